"""What is listed of a workspace is what travels: the same files and sizes, and each rule that left some out."""

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest
from fsspec.registry import known_implementations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.workspace import listing as listing_module
from torchx_tui.backends.workspace.build_context import DOCKERFILE, build_context
from torchx_tui.backends.workspace.listing import list_workspace
from torchx_tui.specs import SchedulerError, Workspace
from torchx_tui.tui.launch.work import list_shipped

# A few names, so that patterns and files meet.
PARTS = st.sampled_from(["a", "b", "data", "x.py", "x.pyc", "big.bin"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join) | st.just(DOCKERFILE)
PATTERNS = st.lists(
    st.sampled_from(["*.pyc", "data", "data/", "/a", "**/b", "*", "!x.py", "!a/x.py", "# note", "", "a/b", DOCKERFILE]),
    max_size=4,
)


def fill(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(workspace):
    """Return the files and links that an engine is sent, with their sizes."""
    with tarfile.open(fileobj=io.BytesIO(b"".join(build_context(workspace)))) as tar:
        return {one.name: one.size for one in tar if not one.isdir()}


def listed(projects):
    return list_workspace(Workspace({projects: ""} if isinstance(projects, str) else projects))


def same(workspace):
    found = dict(listed(workspace).files)
    sent = packed(workspace)
    # The engine is always told how to build; where the workspace does not say it, that is none of its files.
    if DOCKERFILE not in found:
        del sent[DOCKERFILE]
    assert found == sent


# A folder, as it is packed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(files=st.dictionaries(PATHS, st.text("z", max_size=9), max_size=8), patterns=PATTERNS)
def test_any_folder_is_listed_as_it_is_packed(tmp_path_factory, files, patterns):
    folder = tmp_path_factory.mktemp("project")
    for name, text in files.items():
        # A path that is a file and a folder at once is only one of them.
        if not any((folder / part).is_file() for part in Path(name).parents) and not (folder / name).is_dir():
            fill(folder, {name: text})
    (folder / ".dockerignore").write_text("\n".join(patterns))
    same(str(folder))


def test_links_travel_as_they_are_packed(tmp_path):
    folder = fill(tmp_path / "project", {"main.py": "print(1)", "lib/a.py": "a"})
    other = fill(tmp_path / "other", {"data.txt": "of another folder", "sub/x": "x"})
    (folder / "inside").symlink_to("main.py")
    (folder / "inside_folder").symlink_to("lib")
    (folder / "outside").symlink_to(other / "data.txt")
    (folder / "outside_folder").symlink_to(other / "sub")
    (folder / "dangling").symlink_to("/no/such/file")
    (folder / "loop").symlink_to("loop")
    found = dict(listed(str(folder)).files)
    assert found["inside"] == found["inside_folder"] == found["loop"] == 0
    assert found["outside"] == len("of another folder")
    assert not {"dangling", "outside_folder", "outside_folder/x"} & set(found)
    same(str(folder))


def test_what_is_no_file_does_not_travel(tmp_path):
    folder = fill(tmp_path / "p", {"a": "a"})
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        assert listed(str(folder)).files == [("a", 1)]
        same(str(folder))


def test_odd_names(tmp_path):
    names = ["with space", "[red]x[/red]", "ünï/cödé", "new\nline", "n" * 200, ".hidden", "-dash"]
    folder = fill(tmp_path / "p", {name: name for name in names})
    assert {name for name, _ in listed(str(folder)).files} == set(names)
    same(str(folder))


def test_an_empty_folder(tmp_path):
    folder = fill(tmp_path / "p", {})
    (folder / "empty").mkdir()
    found = listed(str(folder))
    assert (found.files, found.total, found.rules, found.left, found.is_whole) == ([], 0, [], {}, True)
    same(str(folder))


def test_rules_are_named_with_how_much_they_leave_out(tmp_path):
    folder = fill(tmp_path / "p", {"main.py": "12345", "a.pyc": "", "lib/b.pyc": "", "data/x": "", "data/y": ""})
    (folder / ".dockerignore").write_text("*.pyc\ndata/\n# note\nnothing\n")
    found = listed(str(folder))
    assert found.rules == [str(folder / ".dockerignore")]
    # A folder that stays at home counts once: nobody looks into it.
    assert found.left == {".dockerignore: *.pyc": 2, ".dockerignore: data": 1}
    assert found.total == 5 + len("*.pyc\ndata/\n# note\nnothing\n")
    (folder / ".dockerignore").write_text("data/\n!data/y\n")
    assert listed(str(folder)).left == {".dockerignore: data": 1}
    assert "data/y" in dict(listed(str(folder)).files)


def test_the_engine_reads_no_other_ignore_file_of_a_single_project(tmp_path):
    folder = fill(tmp_path / "p", {"a": "", ".torchxignore": "a"})
    assert set(dict(listed(str(folder)).files)) == {"a", ".torchxignore"}
    assert set(dict(listed({str(folder): "lib"}).files)) == {"lib/.torchxignore"}


# Several projects, as they are merged


def merged(tmp_path, projects):
    out = tmp_path / "merged"
    out.mkdir()
    Workspace(projects).merge_into(out)
    return {path.relative_to(out).as_posix(): path.stat().st_size for path in out.rglob("*") if path.is_file()}


def test_projects_are_listed_where_they_go(tmp_path):
    fill(tmp_path, {"a/x.py": "1", "a/skip": "", "a/.torchxignore": "skip", "b/y.py": "22", "b/x.py": "333"})
    fill(tmp_path, {"one.txt": "4444", "two.txt": "55555"})
    projects = {
        str(tmp_path / "a"): "",
        str(tmp_path / "b"): "lib/",
        str(tmp_path / "one.txt"): "renamed.txt",
        str(tmp_path / "two.txt"): "lib",
    }
    found = listed(projects)
    assert dict(found.files) == merged(tmp_path, projects)
    assert dict(found.files)["renamed.txt"] == 4
    assert dict(found.files)["lib/two.txt"] == 5
    assert found.rules == [str(tmp_path / "a" / ".torchxignore")]


def test_a_later_project_is_copied_over_an_earlier_one(tmp_path):
    fill(tmp_path, {"a/x.py": "1", "b/x.py": "333"})
    projects = {str(tmp_path / "a"): "", str(tmp_path / "b"): ""}
    assert listed(projects).files == [("x.py", 3)]
    assert dict(listed(projects).files) == merged(tmp_path, projects)


# Elsewhere


def test_a_url_is_listed_as_it_is_packed(tmp_path, monkeypatch):
    import fsspec

    memory = fsspec.filesystem("memory")
    for name, text in (("a.py", b"a"), ("sub/b.py", b"bb"), ("sub/c.pyc", b"c"), (".dockerignore", b"*.pyc\nDocker*"),
                       (DOCKERFILE, b"FROM scratch")):  # fmt: skip
        memory.pipe(f"/{tmp_path.name}/{name}", text)
    url = f"memory://{tmp_path.name}"
    found = listed(url)
    assert dict(found.files) == {"a.py": 1, "sub/b.py": 2, ".dockerignore": 13, DOCKERFILE: 12}
    assert found.rules == [f"{url}/.dockerignore"]
    assert found.left == {".dockerignore: *.pyc": 1}
    same(url)
    assert dict(listed({f"{url}/a.py": "lib/x.py"}).files) == {"lib/x.py": 1}
    # Some kinds of stores keep the last slash of a path.
    monkeypatch.setattr(listing_module, "open_url", lambda *_, **__: (memory, f"/{tmp_path.name}/"))
    assert listed(url) == found


# What cannot be read


@pytest.mark.parametrize(
    ("workspace", "words"),
    [
        ("{tmp}/gone", "gone cannot be read: No such file or directory"),
        ("{tmp}/file", "is not a folder: give the path of one, or a URL"),
        ("~nobody.here/x", "~nobody.here/x cannot be read"),
        ("memory://gone.nowhere", "is not a folder there"),
        ("nosuch://x", "cannot be opened"),
        ("needs-more://x", "cannot be opened: Install no_such_package"),
    ],
)
def test_what_cannot_be_read_says_why_and_is_not_packed(tmp_path, workspace, words, monkeypatch):
    # Most kinds of stores need a package of their own.
    missing = {"class": "no_such_package.Files", "err": "Install no_such_package"}
    monkeypatch.setitem(known_implementations, "needs-more", missing)
    (tmp_path / "file").write_text("x")
    place = workspace.format(tmp=tmp_path)
    with pytest.raises(SchedulerError) as caught:
        listed(place)
    assert words in str(caught.value)
    with pytest.raises(SchedulerError):
        packed(place)


def test_every_failure_is_a_sentence_for_the_form(tmp_path, monkeypatch):
    runner = Runner(journal=Journal(tmp_path / "journal"))
    assert list_shipped(runner, "{/a: b")[1].startswith("workspace:")
    assert "gone" in list_shipped(runner, str(tmp_path / "gone"))[1]

    def fails(*_args, **_more):
        raise KeyError("bucket")

    monkeypatch.setattr(listing_module, "open_url", fails)
    assert list_shipped(runner, "memory://x") == (None, "KeyError: 'bucket'")


def test_a_listing_ends_and_says_so(tmp_path, monkeypatch):
    folder = fill(tmp_path / "p", {str(number): "" for number in range(5)})
    monkeypatch.setattr(listing_module, "MOST_FILES", 3)
    found = listed(str(folder))
    assert (len(found.files), found.is_whole) == (3, False)


def test_a_listing_that_nobody_waits_for_ends(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
        (tmp_path / f"{number:02}" / "file").touch()
    asked = []

    def is_wanted():
        asked.append(None)
        return len(asked) < 5

    found = list_workspace(Workspace({str(tmp_path): ""}), is_wanted)
    assert not found.is_whole
    assert 0 < len(found.files) < 5
    (tmp_path / ".dockerignore").write_text("*\n!99\n")
    asked.clear()
    assert not list_workspace(Workspace({str(tmp_path): ""}), is_wanted).is_whole, "nothing of it would be shipped"
