"""Projects are copied without what their ignore files name, and become images."""

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from backend.projects import fill, fill_memory, packed, read_packed, tree
from backend.tables import TABLES

from torchx_tui.backends.workspace import WorkspaceMixin, copy_project
from torchx_tui.backends.workspace.build_context import build_context
from torchx_tui.backends.workspace.ignore import IgnorePatterns
from torchx_tui.backends.workspace.mixin import DirWorkspaceMixin
from torchx_tui.specs.errors import AppDefError, SchedulerError
from torchx_tui.specs.roles import Role
from torchx_tui.specs.workspace import Workspace


@pytest.mark.parametrize(("patterns", "path", "ignored"), TABLES["workspace"]["ignored"])
def test_ignore_patterns(patterns, path, ignored):
    assert IgnorePatterns(patterns.splitlines()).is_ignored(path) is ignored


# Copies


def test_a_folder_is_copied(tmp_path):
    texts = {".torchxignore": "*.pyc\ndata\n!data/small\n", ".dockerignore": "main.py\n"}
    project = fill(tmp_path / "project", "main.py", "a/b/a.py", "a/a.pyc", "data/big", "data/small", "run.sh", **texts)
    (project / "run.sh").chmod(0o755)
    (project / "only/empty").mkdir(parents=True)
    (project / "link").symlink_to("main.py")
    (project / "loop").symlink_to("..")
    target = fill(tmp_path / "target", "kept", "main.py")
    for _ in range(2):
        copy_project(project, target)
        files = [
            ".dockerignore",
            ".torchxignore",
            "a/b/a.py",
            "data/small",
            "kept",
            "link",
            "loop",
            "main.py",
            "run.sh",
        ]
        assert sorted(tree(target)) == files
        assert (target / "only/empty").is_dir()
        assert os.access(target / "run.sh", os.X_OK)
        assert (target / "link").readlink() == Path("main.py")
        assert (target / "main.py").read_text() == "main.py"


@pytest.mark.parametrize("ignored", [b"b\n\xff\n", "\ufeffb\n".encode()], ids=["no text", "byte order mark"])
def test_a_lone_dockerignore_counts(tmp_path, ignored):
    copy_project(fill(tmp_path / "project", "a", "b", **{".dockerignore": ignored}), tmp_path / "target")
    assert tree(tmp_path / "target") == {".dockerignore", "a"}


def test_a_file_is_copied(tmp_path):
    source = fill(tmp_path, "one.py") / "one.py"
    (tmp_path / "folder").mkdir()
    for target, path in (("not/there/two.py", "not/there/two.py"), ("folder", "folder/one.py")):
        copy_project(source, tmp_path / target)
        assert (tmp_path / path).read_text() == "one.py"


def test_links_are_not_followed(tmp_path):
    outside = fill(tmp_path, "outside") / "outside"
    (tmp_path / "target").mkdir()
    (tmp_path / "target/a").symlink_to(outside)
    copy_project(fill(tmp_path / "project", "a"), tmp_path / "target")
    assert outside.read_text() == "outside"
    assert (tmp_path / "target/a").read_text() == "a"


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_url_is_copied(tmp_path, slash):
    files = {"a.py": b"a", "deep/er/b.py": b"b", "sub/c.pyc": b"c", ".torchxignore": b"*.pyc\n\xff\n"}
    url, target = fill_memory(tmp_path, files) + slash, tmp_path / "new/target"
    for _ in range(2):
        copy_project(url, target)
        assert tree(target) == {".torchxignore", "a.py", "deep/er/b.py"}
    # Of one file, a folder that exists takes it in.
    for to in ("file.py", ""):
        copy_project(f"{url.rstrip('/')}/a.py", tmp_path / "of/one" / to)
    assert tree(tmp_path / "of") == {"one/file.py", "one/a.py"}
    Workspace.from_str(f"{url.rstrip('/')}/deep").merge_into(tmp_path / "merged", copy_project)
    assert tree(tmp_path / "merged") == {"er/b.py"}


# Images


@pytest.fixture
def one(tmp_path):
    """Return a workspace of a folder with a file."""
    return Workspace({str(fill(tmp_path / "a", "x", "out.log", **{".torchxignore": "*.log\n"})): ""})


FILES = {"x", ".torchxignore"}


def roles_of(*made):
    return [Role(f"r{number}", image, workspace=workspace) for number, (image, workspace) in enumerate(made)]


class Packer(WorkspaceMixin[Any]):
    def __init__(self):
        self.built = []

    def build_workspace_and_update_role(self, role, workspace, cfg):
        self.built.append((workspace, tree(Path(workspace))))
        role.image = f"{role.image}-{len(self.built)}"


def test_equal_workspaces_are_built_once(tmp_path, one):
    both = Workspace({**one.projects, str(fill(tmp_path / "b", "y")): "lib"})
    roles = [
        Role("r", image, workspace=workspace) for image, workspace in (("i", one), ("i", one), ("j", one), ("i", both))
    ]
    roles.append(Role("none", "i"))
    packer = Packer()
    packer.build_workspaces(roles, {})
    assert [role.image for role in roles] == ["i-1", "i-1", "j-2", "i-3", "i"]
    assert packer.built[0] == (str(tmp_path / "a"), {*FILES, "out.log"})
    merged, files = packer.built[2]
    assert files == {*FILES, "lib/y"}
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


class Nothing(WorkspaceMixin[Any]):
    pass


@pytest.mark.parametrize(
    ("packer", "expected"),
    [
        (EnvPacker, [("i-1", {"WORKSPACE_DIR": "r0"}), ("i-2", {"WORKSPACE_DIR": "r1"}), ("i", {})]),
        (CachingPacker, [("i-t-0", {}), ("i-t-1", {}), ("i", {})]),
    ],
)
def test_builders_of_torchx_work(one, packer, expected):
    roles = roles_of(("i", one), ("i", one), ("i", None))
    packer().build_workspaces(roles, {"tag": "t"})
    assert [(role.image, role.env) for role in roles] == expected
    with pytest.raises(NotImplementedError, match="write build_workspace_and_update_role"):
        Nothing().build_workspaces(roles, {})


def test_workspaces_become_folders(tmp_path, one):
    role, job_dir = Role("r", "i", workspace=one), tmp_path / "job"
    DirWorkspaceMixin().build_workspaces([role], {})
    assert role.image == "i"
    DirWorkspaceMixin().build_workspaces([role], {"job_dir": str(job_dir)})
    assert (role.image, tree(job_dir)) == (str(job_dir), FILES)
    with pytest.raises(SchedulerError, match="cannot be copied to job_dir"):
        DirWorkspaceMixin().build_workspaces([role], {"job_dir": str(job_dir)})


def test_tilde_in_job_dir_is_expanded(tmp_path, one, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    role = Role("r", "i", workspace=one)
    DirWorkspaceMixin().build_workspaces([role], {"job_dir": "~/job"})
    assert (role.image, tree(tmp_path / "job")) == (str(tmp_path / "job"), FILES)
    with pytest.raises(SchedulerError, match="job_dir ~nobody-here/job"):
        DirWorkspaceMixin().build_workspaces([role], {"job_dir": "~nobody-here/job"})


def test_a_missing_project_is_an_error(tmp_path):
    gone = Workspace({str(tmp_path / "gone"): "x"})
    with pytest.raises((AppDefError, SchedulerError), match="gone"):
        Packer().build_workspaces([Role("r", "i", workspace=gone)], {})


# What an engine is sent


DOCKERFILE = "Dockerfile.torchx"


def test_a_folder_is_packed_without_ignored_files(tmp_path):
    texts = {".dockerignore": "data\n*.pyc\n!pkg/keep.pyc\n", ".torchxignore": "main.py\n"}
    names = {"main.py", "pkg/keep.pyc", "run.sh", "long" * 40, os.fsdecode(b"odd\xff")}
    project = fill(tmp_path / "p", *names, "data/big", "pkg/a.pyc", **texts)
    (project / "run.sh").chmod(0o755)
    os.utime(project / "run.sh", (77, 77))
    (project / "empty").mkdir()
    (project / "inside").symlink_to("main.py")
    (project / "outside").symlink_to(fill(tmp_path / "other", "file") / "file")
    (project / "dangling").symlink_to("/no/such/file")
    with packed(build_context(str(project))) as tar:
        entries = {entry.name: entry for entry in tar}
        assert set(entries) == {*names, *texts, DOCKERFILE, "empty", "inside", "outside"}
        assert (entries["run.sh"].mode, entries["run.sh"].mtime) == (0o755, 77)
        assert [entries[name].type for name in ("inside", "outside", "empty")] == [
            tarfile.SYMTYPE, tarfile.REGTYPE, tarfile.DIRTYPE,
        ]  # fmt: skip
        assert read_packed(tar, "outside") == b"file"
        # Equal wherever it is packed: an engine keeps layers that have not changed.
        made = entries[DOCKERFILE]
        assert (made.mode, made.mtime, made.type, made.linkname) == (0o644, 0, tarfile.REGTYPE, "")
        assert b"FROM $IMAGE" in read_packed(tar, DOCKERFILE)
        assert {entry.uid for entry in entries.values()} == {0}


def test_an_ignored_dockerfile_is_sent(tmp_path):
    project = fill(tmp_path / "p", "a", **{DOCKERFILE: "FROM scratch\n", ".dockerignore": "*\n"})
    with packed(build_context(str(project))) as tar:
        assert tar.getnames() == [DOCKERFILE]
        assert read_packed(tar, DOCKERFILE) == b"FROM scratch\n"


def test_a_url_is_packed_with_modes(tmp_path):
    project = fill(
        tmp_path / "p", "run.sh", "sub/train.py", "c.pyc", **{".dockerignore": "*.pyc", DOCKERFILE: "FROM a"}
    )
    (project / "run.sh").chmod(0o755)
    (project / "sub/train.py").chmod(0o600)
    data = b"".join(build_context(f"file://{project}/"))
    with packed([data]) as tar:
        assert {entry.name: (entry.mode, entry.mtime, entry.linkname) for entry in tar} == {
            "run.sh": (0o755, 0, ""),
            "sub/train.py": (0o600, 0, ""),
            ".dockerignore": (0o644, 0, ""),
            DOCKERFILE: (0o644, 0, ""),
        }
        assert read_packed(tar, DOCKERFILE) == b"FROM a"
    # A tar archive ends with two blocks of zeros.
    assert len(data) % 512 == 0
    assert 1024 <= len(data) - len(data.rstrip(b"\0")) < 1536


@pytest.mark.parametrize("size", [10, 3_000_004])
def test_a_file_that_changes_keeps_its_size_in_the_archive(tmp_path, size):
    project = fill(tmp_path / "p", "b", a=b"x" * 3_000_000)
    parts = build_context(str(project))
    sent = [next(parts)]
    os.truncate(project / "a", size)
    with packed([*sent, *parts]) as tar:
        assert tar.getmember("a").size == 3_000_000
        assert read_packed(tar, "b") == b"b"


@pytest.mark.parametrize("workspace", ["{}/gone", "memory:/{}-gone", "nonsense://x"])
def test_a_missing_workspace_is_an_error(tmp_path, workspace):
    with pytest.raises(SchedulerError, match="workspace"):
        list(build_context(workspace.format(tmp_path)))
