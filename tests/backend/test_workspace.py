"""Projects are copied without what their ignore files name."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.workspace import WorkspaceMixin, copy_project, pin_workspace_images
from torchx_tui.backends.workspace.build_context import build_context
from torchx_tui.backends.workspace.ignore import IgnorePatterns
from torchx_tui.backends.workspace.mixin import DirWorkspaceMixin, TmpDirWorkspaceMixin
from torchx_tui.specs import AppDef, AppDefError, Role, SchedulerError, Workspace


def tree(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


def fill(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    ("patterns", "path", "ignored"),
    [
        ("*.pyc", "a/b.pyc", True),
        ("*.pyc", "a/b.py", False),
        ("data", "data/x/y", True),
        ("data/", "data/x/y", True),
        ("/data", "data/x", True),
        ("data", "more/data", False),
        ("**/cache", "a/cache/x", True),
        ("**/cache", "cache/x", True),
        ("*\n!keep.txt", "keep.txt", False),
        ("*\n!keep", "keep/x", False),
        ("!a\na", "a", True),
        ("# a\n\n  a  ", "a", True),
        ("#a", "a", False),
    ],
)
def test_patterns(patterns, path, ignored):
    assert IgnorePatterns(patterns.splitlines()).is_ignored(path) is ignored


def test_a_folder_is_copied(tmp_path):
    project = fill(tmp_path / "project", "main.py", "pkg/a.py", "pkg/a.pyc", "data/big", "data/small")
    (project / ".torchxignore").write_text("*.pyc\ndata\n!data/small\n")
    (project / ".dockerignore").write_text("main.py\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "empty").mkdir()
    (project / "link").symlink_to("main.py")
    (project / "loop").symlink_to("..")
    target = fill(tmp_path / "target", "kept", "main.py")
    copy_project(project, target)
    assert tree(target) == {
        ".dockerignore",
        ".torchxignore",
        "data/small",
        "kept",
        "link",
        "loop",
        "main.py",
        "pkg/a.py",
        "run.sh",
    }
    assert (target / "empty").is_dir()
    assert os.access(target / "run.sh", os.X_OK)
    assert (target / "link").readlink() == Path("main.py")
    assert (target / "main.py").read_text() == "main.py"


def test_the_ignore_file_of_docker_counts_alone(tmp_path):
    project = fill(tmp_path / "project", "a", "b")
    (project / ".dockerignore").write_bytes(b"b\n\xff\n")
    copy_project(project, tmp_path / "target")
    assert tree(tmp_path / "target") == {".dockerignore", "a"}


def test_an_ignore_file_may_begin_with_a_byte_order_mark(tmp_path):
    project = fill(tmp_path / "project", "a", "b")
    (project / ".dockerignore").write_text("\ufeffb\n", encoding="utf-8")
    copy_project(project, tmp_path / "target")
    assert tree(tmp_path / "target") == {".dockerignore", "a"}


def test_a_file_is_copied(tmp_path):
    fill(tmp_path, "one.py")
    copy_project(tmp_path / "one.py", tmp_path / "new" / "two.py")
    (tmp_path / "folder").mkdir()
    copy_project(tmp_path / "one.py", tmp_path / "folder")
    assert (tmp_path / "new" / "two.py").read_text() == (tmp_path / "folder" / "one.py").read_text() == "one.py"


def test_nothing_is_written_through_a_link(tmp_path):
    project = fill(tmp_path / "project", "a")
    outside = fill(tmp_path, "outside") / "outside"
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "a").symlink_to(outside)
    copy_project(project, tmp_path / "target")
    assert outside.read_text() == "outside"
    assert (tmp_path / "target" / "a").read_text() == "a"


def test_a_url_is_copied(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    for name, text in (("a.py", b"a"), ("sub/b.py", b"b"), ("sub/b.pyc", b"c"), (".torchxignore", b"*.pyc")):
        memory.pipe(f"/{tmp_path.name}/{name}", text)
    copy_project(f"memory://{tmp_path.name}", tmp_path / "target")
    assert tree(tmp_path / "target") == {".torchxignore", "a.py", "sub/b.py"}
    copy_project(f"memory://{tmp_path.name}/a.py", tmp_path / "one.py")
    assert (tmp_path / "one.py").read_text() == "a"


def test_workspaces_are_merged_with_it(tmp_path):
    fill(tmp_path, "a/x", "b/y")
    Workspace({str(tmp_path / "a"): "", str(tmp_path / "b"): "lib"}).merge_into(tmp_path / "out")
    assert tree(tmp_path / "out") == {"x", "lib/y"}


class Packer(WorkspaceMixin[Any]):
    def __init__(self):
        self.built: list[tuple[str, set[str]]] = []

    def build_workspace_and_update_role(self, role, workspace, cfg):
        self.built.append((workspace, tree(Path(workspace))))
        role.image = f"{role.image}-{len(self.built)}"


def test_equal_workspaces_are_built_once(tmp_path):
    fill(tmp_path, "a/x", "b/y")
    one = Workspace({str(tmp_path / "a"): ""})
    both = Workspace({str(tmp_path / "a"): "", str(tmp_path / "b"): "lib"})
    roles = [
        Role("first", "i", workspace=one),
        Role("same", "i", workspace=one),
        Role("image", "j", workspace=one),
        Role("both", "i", workspace=both),
        Role("none", "i"),
    ]
    packer = Packer()
    packer.build_workspaces(roles, {})
    assert [role.image for role in roles] == ["i-1", "i-1", "j-2", "i-3", "i"]
    assert packer.built[0] == (str(tmp_path / "a"), {"x"})
    merged, files = packer.built[2]
    assert files == {"x", "lib/y"}
    assert not Path(merged).exists()


class EnvPacker(Packer):
    """Changes more of a role than its image, as builders of TorchX may."""

    def build_workspace_and_update_role(self, role, workspace, cfg):
        super().build_workspace_and_update_role(role, workspace, cfg)
        role.env["WORKSPACE_DIR"] = role.name


class CachingPacker(WorkspaceMixin[Any]):
    """Provides the method that newer builders of TorchX do."""

    def caching_build_workspace_and_update_role(self, role, cfg, build_cache):
        role.image = f"{role.image}-{cfg['tag']}-{len(build_cache)}"
        build_cache[role.name] = role.image


def test_builders_of_torchx_s_kinds_work(tmp_path):
    fill(tmp_path, "a/x")
    one = Workspace({str(tmp_path / "a"): ""})

    def roles():
        return [Role("first", "i", workspace=one), Role("second", "i", workspace=one), Role("none", "i")]

    made = roles()
    EnvPacker().build_workspaces(made, {})
    assert [(role.image, role.env) for role in made] == [
        ("i-1", {"WORKSPACE_DIR": "first"}), ("i-2", {"WORKSPACE_DIR": "second"}), ("i", {}),
    ]  # fmt: skip
    made = roles()
    CachingPacker().build_workspaces(made, {"tag": "t"})
    assert [role.image for role in made] == ["i-t-0", "i-t-1", "i"]

    class Nothing(WorkspaceMixin[Any]):
        pass

    with pytest.raises(NotImplementedError, match="write build_workspace_and_update_role"):
        Nothing().build_workspaces(roles(), {})


def test_workspaces_that_become_folders(tmp_path):
    fill(tmp_path, "a/x", "a/out.log")
    (tmp_path / "a" / ".torchxignore").write_text("*.log\n")
    one = Workspace({str(tmp_path / "a"): ""})
    role = Role("r", "i", workspace=one)
    job_dir = tmp_path / "job"
    DirWorkspaceMixin().build_workspaces([role], {"job_dir": str(job_dir)})
    assert (role.image, tree(job_dir)) == (str(job_dir), {"x", ".torchxignore"})
    with pytest.raises(SchedulerError, match="cannot be copied to job_dir"):
        DirWorkspaceMixin().build_workspaces([Role("r", "i", workspace=one)], {"job_dir": str(job_dir)})
    role = Role("r", "i", workspace=one)
    DirWorkspaceMixin().build_workspaces([role], {})
    assert role.image == "i"
    TmpDirWorkspaceMixin().build_workspaces([role], {})
    try:
        assert tree(Path(role.image)) == {"x", ".torchxignore"}
    finally:
        shutil.rmtree(role.image)


def test_images_that_were_built_are_pinned():
    one, other = Workspace({"/a": ""}), Workspace({"/b": ""})
    roles = [
        Role("r", "i", workspace=one),
        Role("s", "j", workspace=one),
        Role("t", "i", workspace=other),
        Role("u", "i"),
    ]
    pin_workspace_images(AppDef("app", roles), {("i", one): "built"})
    assert [(role.image, bool(role.workspace)) for role in roles] == [
        ("built", False), ("j", True), ("i", True), ("i", False),
    ]  # fmt: skip


def test_a_missing_project(tmp_path):
    gone = Workspace({str(tmp_path / "gone"): "x"})
    with pytest.raises((AppDefError, SchedulerError), match="gone"):
        Packer().build_workspaces([Role("r", "i", workspace=gone)], {})


def test_a_workspace_can_be_a_url(tmp_path):
    import fsspec

    from torchx_tui.specs import Workspace

    memory = fsspec.filesystem("memory")
    memory.pipe("/project/train.py", b"print(1)")
    Workspace.from_str("memory://project").merge_into(tmp_path / "out")
    assert (tmp_path / "out" / "train.py").read_bytes() == b"print(1)"


def test_a_project_elsewhere_is_copied_without_what_is_ignored(tmp_path):
    import fsspec

    memory = fsspec.filesystem("memory")
    base = f"/{tmp_path.name}-copied"
    ignored = b"*.pyc\n\xff\n"
    for name, data in (("a.py", b"a"), ("deep/er/b.py", b"b"), ("c.pyc", b"c"), (".torchxignore", ignored)):
        memory.pipe(f"{base}/{name}", data)
    for number, url in enumerate((f"memory:/{base}", f"memory:/{base}/")):
        target = tmp_path / "new" / str(number)
        copy_project(url, target)
        copied = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
        assert copied == {"a.py", "deep/er/b.py", ".torchxignore"}
        copy_project(url, target)  # over what is there
    copy_project(f"memory:/{base}/a.py", tmp_path / "of" / "one" / "file.py")
    assert (tmp_path / "of" / "one" / "file.py").read_bytes() == b"a"


def test_a_project_here_is_copied_over_what_is_there(tmp_path):
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "a.py").write_text("a")
    (source / "empty").mkdir()
    (source / "only" / "empty").mkdir(parents=True)
    target = tmp_path / "not" / "there"
    for _ in range(2):
        copy_project(source, target)
        assert (target / "deep" / "er" / "a.py").read_text() == "a"
        assert (target / "empty").is_dir()
        assert (target / "only" / "empty").is_dir()
    # One file goes into a folder that is there, else to the path itself.
    copy_project(source / "deep" / "er" / "a.py", target)
    assert (target / "a.py").read_text() == "a"
    copy_project(source / "deep" / "er" / "a.py", tmp_path / "x" / "y" / "b.py")
    assert (tmp_path / "x" / "y" / "b.py").read_text() == "a"


def test_a_file_elsewhere_is_packed_with_what_may_be_done_with_it(tmp_path):
    project = fill(tmp_path / "p", "run.sh", "train.py")
    (project / "run.sh").chmod(0o755)
    (project / "train.py").chmod(0o600)
    (project / "Dockerfile.torchx").write_text("FROM scratch\n")
    data = b"".join(build_context(f"file://{project}/"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {entry.name: (entry.mode, entry.mtime, entry.linkname) for entry in tar} == {
            "run.sh": (0o755, 0, ""), "train.py": (0o600, 0, ""), "Dockerfile.torchx": (0o644, 0, ""),
        }  # fmt: skip
        assert tar.extractfile("Dockerfile.torchx").read() == b"FROM scratch\n"
    # Two blocks of zeros are its end.
    assert len(data) % 512 == 0
    assert 1024 <= len(data) - len(data.rstrip(b"\0")) < 1536


def test_a_file_that_shrinks_meanwhile_is_filled_up(tmp_path):
    project = fill(tmp_path / "p", "a", "b")
    (project / "a").write_bytes(b"x" * 3_000_000)
    parts = build_context(str(project))
    sent = [next(parts)]
    os.truncate(project / "a", 10)
    sent += parts
    with tarfile.open(fileobj=io.BytesIO(b"".join(sent))) as tar:
        assert tar.getmember("a").size == 3_000_000
        assert tar.extractfile("b").read() == b"b"


def test_one_file_of_a_url_gets_a_folder(tmp_path):
    (tmp_path / "a.py").write_text("a")
    copy_project(f"file://{tmp_path}/a.py", tmp_path / "not" / "there" / "b.py")
    assert (tmp_path / "not" / "there" / "b.py").read_text() == "a"
