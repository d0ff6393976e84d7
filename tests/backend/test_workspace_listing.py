"""What is listed of a workspace is what travels: the same files and sizes, and each rule that left some out."""

import os
import socket
from pathlib import Path

import fsspec
import pytest
from backend.projects import fill, fill_memory, packed, tree
from backend.tables import TABLES
from fsspec.registry import known_implementations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchx_tui.backends.api import WorkspaceListing
from torchx_tui.backends.workspace import copy_project
from torchx_tui.backends.workspace import listing as listing_module
from torchx_tui.backends.workspace.build_context import DOCKERFILE, build_context
from torchx_tui.backends.workspace.listing import list_workspace
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.workspace import Workspace
from torchx_tui.tui.launch.work import list_shipped

# A few names, so that patterns and files meet.
PARTS = st.sampled_from(["a", "b", "data", "x.py", "x.pyc", "big.bin"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join) | st.just(DOCKERFILE)
PATTERNS = st.lists(
    st.sampled_from(["*.pyc", "data", "data/", "/a", "**/b", "*", "!x.py", "!a/x.py", "# note", "", "a/b", DOCKERFILE]),
    max_size=4,
)


def listed(projects):
    return list_workspace(Workspace(projects if isinstance(projects, dict) else {str(projects): ""}))


def packed_sizes(workspace):
    with packed(build_context(str(workspace))) as tar:
        return {one.name: one.size for one in tar if not one.isdir()}


def listed_as_packed(workspace):
    """Return the files and sizes of a workspace, which are those that an engine is sent."""
    found, sent = dict(listed(workspace).files), packed_sizes(workspace)
    # An engine is always sent a Dockerfile; a default one is not a file of the workspace.
    if DOCKERFILE not in found:
        del sent[DOCKERFILE]
    assert found == sent
    return found


# A folder, as it is packed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(PATHS, st.text("z", max_size=9), max_size=8), patterns=PATTERNS)
def test_any_folder_is_listed_as_it_is_packed(tmp_path_factory, files, patterns):
    folder = tmp_path_factory.mktemp("project")
    for name, text in files.items():
        # A path that is a file and a folder at once is only one of them.
        if not any((folder / part).is_file() for part in Path(name).parents) and not (folder / name).is_dir():
            fill(folder, **{name: text})
    listed_as_packed(fill(folder, **{".dockerignore": "\n".join(patterns)}))


def test_links_are_listed_as_they_are_packed(tmp_path):
    folder = fill(tmp_path / "project", "main.py", "lib/a.py")
    other = fill(tmp_path / "other", "data.txt", "sub/x")
    for name, target in (
        ("inside", "main.py"), ("inside_folder", "lib"), ("loop", "loop"), ("dangling", "/no/such/file"),
        ("outside", other / "data.txt"), ("outside_folder", other / "sub"),
    ):  # fmt: skip
        (folder / name).symlink_to(target)
    sizes = {"main.py": 7, "lib/a.py": 8, "inside": 0, "inside_folder": 0, "loop": 0, "outside": 8}
    assert listed_as_packed(folder) == sizes


def test_only_files_are_listed(tmp_path):
    folder = fill(tmp_path / "p", "a")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        assert listed_as_packed(folder) == {"a": 1}


def test_odd_names_are_listed(tmp_path):
    names = ["with space", "[red]x[/red]", "ünï/cödé", "new\nline", "n" * 200, ".hidden", "-dash"]
    assert set(listed_as_packed(fill(tmp_path / "p", *names))) == set(names)


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert listed(tmp_path) == WorkspaceListing()
    assert (WorkspaceListing().total, WorkspaceListing().is_whole) == (0, True)
    assert listed_as_packed(tmp_path) == {}


def test_rules_are_named_with_their_counts(tmp_path):
    folder = fill(tmp_path / "p", "main.py", "a.pyc", "lib/b.pyc", "data/x", "data/y")
    rules = folder / ".dockerignore"
    rules.write_text("*.pyc\ndata/\n# note\nnothing\n")
    found = listed(folder)
    assert found.rules == [str(rules)]
    # An ignored folder counts once: its files are not visited.
    assert found.left == {".dockerignore: *.pyc": 2, ".dockerignore: data": 1}
    assert found.total == len("main.py") + rules.stat().st_size
    rules.write_text("data/\n!data/y\n")
    assert listed(folder).left == {".dockerignore: data": 1}
    assert "data/y" in dict(listed(folder).files)


def test_torchxignore_counts_for_merged_projects_alone(tmp_path):
    folder = fill(tmp_path / "p", "a", **{".torchxignore": "a"})
    assert listed(folder).files == [(".torchxignore", 1), ("a", 1)]
    assert listed({str(folder): "lib"}).files == [("lib/.torchxignore", 1)]


# Several projects, as they are merged


def test_projects_are_listed_where_they_are_merged(tmp_path):
    names = ("a/x.py", "a/skip", "b/y.py", "b/lib/x.py", "one.txt", "two.txt")
    fill(tmp_path, *names, **{"a/.torchxignore": "skip", "c/y.py": "1"})
    places = {"a": "", "b": "lib/", "c": "lib", "one.txt": "renamed.txt", "two.txt": "lib"}
    projects = {str(tmp_path / name): remote for name, remote in places.items()}
    found, out = listed(projects), tmp_path / "merged"
    out.mkdir()
    Workspace(projects).merge_into(out, copy_project)
    assert dict(found.files) == {name: (out / name).stat().st_size for name in tree(out)}
    assert set(dict(found.files)) == {".torchxignore", "x.py", "lib/y.py", "lib/lib/x.py", "renamed.txt", "lib/two.txt"}
    assert (out / "lib/y.py").read_text() == "1"
    assert found.rules == [str(tmp_path / "a/.torchxignore")]


# Elsewhere


def test_a_url_is_listed_as_it_is_packed(tmp_path, monkeypatch):
    files = {
        "a.py": b"a",
        "sub/b.py": b"bb",
        "sub/c.pyc": b"c",
        ".dockerignore": b"*.pyc\nDocker*",
        DOCKERFILE: b"FROM a",
    }
    url = fill_memory(tmp_path, files)
    assert listed_as_packed(url) == {name: len(text) for name, text in files.items() if name != "sub/c.pyc"}
    found = listed(url)
    assert (found.rules, found.left) == ([f"{url}/.dockerignore"], {".dockerignore: *.pyc": 1})
    assert listed({f"{url}/a.py": "lib/x.py"}).files == [("lib/x.py", 1)]
    # Some kinds of stores keep the last slash of a path.
    root = (fsspec.filesystem("memory"), f"/{tmp_path.name}/")
    monkeypatch.setattr(listing_module, "open_url", lambda *_, **__: root)
    assert listed(url) == found


# What cannot be read


@pytest.mark.parametrize(("workspace", "words"), TABLES["workspace"]["unreadable"])
def test_an_unreadable_workspace_says_why(tmp_path, workspace, words, monkeypatch):
    # Most kinds of stores need a package of their own.
    missing = {"class": "no_such_package.Files", "err": "Install no_such_package"}
    monkeypatch.setitem(known_implementations, "needs-more", missing)
    place = workspace.format(tmp=fill(tmp_path, "file"))
    with pytest.raises(SchedulerError) as caught:
        listed(place)
    assert words in str(caught.value)
    with pytest.raises(SchedulerError):
        packed_sizes(place)


@pytest.fixture
def scheduler():
    """Give no scheduler: listing needs none."""


def test_every_failure_is_a_sentence_for_the_form(runner, tmp_path, monkeypatch):
    assert list_shipped(runner, "{/a: b")[1].startswith("workspace:")
    assert "gone" in list_shipped(runner, str(tmp_path / "gone"))[1]

    def fails(*_args, **_more):
        raise KeyError("bucket")

    monkeypatch.setattr(listing_module, "open_url", fails)
    assert list_shipped(runner, "memory://x") == (None, "KeyError: 'bucket'")


def test_a_long_listing_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(listing_module, "MOST_FILES", 3)
    found = listed(fill(tmp_path, *"abcde"))
    assert (len(found.files), found.is_whole) == (3, False)


def test_an_unwanted_listing_ends(tmp_path):
    fill(tmp_path, *(f"{number:02}/file" for number in range(20)))

    def is_wanted():
        nonlocal left
        left -= 1
        return left > 0

    left = 5
    found = list_workspace(Workspace({str(tmp_path): ""}), is_wanted)
    assert not found.is_whole
    assert 0 < len(found.files) < 5
    # It also ends where nothing would be shipped.
    fill(tmp_path, **{".dockerignore": "*\n!99\n"})
    left = 5
    assert not list_workspace(Workspace({str(tmp_path): ""}), is_wanted).is_whole
