"""Whose files are used, and what a user trusts besides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchx_tui.base.errors import ConfigError
from torchx_tui.base.trust import UntrustedError, check_owner, owner_of, program_fault, trust_folder, trusted_list

OTHER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def program(tmp_path):
    """Return a program in an environment that a link in the project names."""
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python3").touch(0o755)
    (tmp_path / "env" / "bin" / "python").symlink_to("python3")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".venv").symlink_to("../env")
    return tmp_path / "project" / ".venv" / "bin" / "python"


def give(path: Path) -> None:
    os.lchown(path, OTHER, OTHER)


def test_own_program_is_run(program):
    assert program_fault(program) == ""


@as_root
@pytest.mark.parametrize("entry", ["project/.venv", "env", "env/bin", "env/bin/python", "env/bin/python3", "project"])
def test_program_on_way_of_another_user_is_refused(program, tmp_path, entry):
    give(tmp_path / entry)
    assert program_fault(program) == f"{tmp_path / entry} belongs to the user {OTHER}"


@pytest.mark.parametrize("entry", ["env", "env/bin", "env/bin/python3", "project"])
def test_program_that_others_can_write_is_refused(program, tmp_path, entry):
    (tmp_path / entry).chmod(0o777)
    assert program_fault(program) == f"{tmp_path / entry} can be written by everybody"


@as_root
def test_program_that_a_group_can_write_is_refused(program, tmp_path):
    os.chown(tmp_path / "env", -1, OTHER)
    (tmp_path / "env").chmod(0o775)
    assert program_fault(program) == f"{tmp_path / 'env'} can be written by the group {OTHER}"


@as_root
def test_group_may_write_to_a_folder_of_root(program, tmp_path, monkeypatch):
    """The usual project folder of a cluster; what another member puts there belongs to that member."""
    os.chown(tmp_path / "project", 0, OTHER)
    (tmp_path / "project").chmod(0o2775)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert program_fault(program) == ""
    give(tmp_path / "project" / ".venv")
    assert "belongs to" in program_fault(program)


def test_sticky_folder_is_no_fault(program, tmp_path):
    (tmp_path / "project").chmod(0o1777)
    assert program_fault(program) == ""


def test_links_in_a_circle_are_a_fault(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "Too many levels of symbolic links" in program_fault(tmp_path / "a" / "python")


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """Return a file in a repository of another user: every file here, as this process is somebody else."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    file = tmp_path / "repository" / "jobs" / "train.py"
    file.parent.mkdir()
    file.touch()
    for path in (tmp_path, *tmp_path.rglob("*")):
        if os.geteuid() == 0:
            give(path)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    return file


def test_repository_of_another_user_is_trusted_once(theirs):
    repository = theirs.parents[1]
    with pytest.raises(UntrustedError) as caught:
        check_owner(theirs)
    assert caught.value.folder == repository
    assert f"add this folder as a line to {trusted_list()}" in str(caught.value)
    trust_folder(caught.value.folder)
    check_owner(theirs)
    (theirs.parent / "more.py").touch()
    check_owner(theirs.parent / "more.py")
    assert trusted_list().read_text() == f"{repository}\n"
    assert trusted_list().stat().st_mode & 0o777 == 0o600
    (repository.parent / "beside.py").touch()
    with pytest.raises(UntrustedError):
        check_owner(repository.parent / "beside.py")


def test_trusted_repository_has_trusted_programs(theirs):
    program = theirs.parent / "python"
    program.touch()
    assert "belongs to" in program_fault(program)
    trust_folder(theirs.parents[1])
    assert program_fault(program) == ""


@pytest.mark.parametrize("written", ["# a comment\nrelative\n\n{}", "/elsewhere\n{}\n"])
def test_list_that_a_person_wrote_is_read(theirs, written):
    trusted_list().parent.mkdir(parents=True, exist_ok=True)
    trusted_list().write_text(written.format(theirs.parent))
    check_owner(theirs)
    trust_folder(Path("/more"))
    assert trusted_list().read_text().splitlines()[-2:] == [str(theirs.parent), "/more"]


def test_name_with_line_break_cannot_be_trusted(tmp_path):
    with pytest.raises(ConfigError, match="has a control character"):
        trust_folder(tmp_path / "mine\n/")
    assert not trusted_list().exists()


@as_root
def test_repository_does_not_reach_beyond_its_owner(tmp_path):
    """Anybody can put a `.git` into a shared folder; a yes must not trust all of that."""
    (tmp_path / ".git").mkdir()
    give(tmp_path / ".git")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "a.py").touch()
    for path in (tmp_path / "theirs", tmp_path / "theirs" / "a.py"):
        give(path)
    with pytest.raises(UntrustedError) as caught:
        check_owner(tmp_path / "theirs" / "a.py")
    assert caught.value.folder == tmp_path / "theirs"


@as_root
@pytest.mark.parametrize("change", [lambda path: give(path), lambda path: give(path.parent)], ids=["file", "folder"])
def test_file_or_folder_of_another_user_is_refused(tmp_path, change):
    (tmp_path / "jobs").mkdir()
    file = tmp_path / "jobs" / "a.py"
    file.touch()
    check_owner(file)
    change(file)
    assert owner_of(file) == str(OTHER)
    with pytest.raises(UntrustedError, match=f"belongs to the user {OTHER}"):
        check_owner(file)


def test_missing_file_is_left_to_who_opens_it(tmp_path):
    check_owner(tmp_path / "gone" / "a.py")
    assert owner_of(tmp_path / "gone" / "a.py") is None


@as_root
def test_owner_is_named_unless_it_is_this_user(tmp_path, monkeypatch):
    """Root's files may be used, but are root's; those of a trusted folder stay their owner's."""
    (tmp_path / "a.py").touch()
    assert owner_of(tmp_path / "a.py") == ""
    give(tmp_path / "a.py")
    trust_folder(tmp_path)
    assert owner_of(tmp_path / "a.py") == str(OTHER)
    (tmp_path / "root.py").touch()
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    assert owner_of(tmp_path / "root.py") == "root"
    assert owner_of(tmp_path / "a.py") == ""
    assert program_fault(tmp_path / "gone" / "python") == ""
