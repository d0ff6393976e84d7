"""configure: what it writes is read again, and nothing is ever lost."""

from __future__ import annotations

from pathlib import Path

from support.command import Command

REQUIRED = "[kubernetes]\nqueue = #FIXME:(str) Volcano queue to schedule job in.\n"


def test_it_writes_what_must_be_given(command: Command, tmp_path: Path):
    ended = command("configure", "-s", "kubernetes")
    assert (ended.code, ended.out, ended.err) == (0, "", f"torchx-tui: wrote {tmp_path}/.torchxconfig\n")
    assert (tmp_path / ".torchxconfig").read_text().strip() == REQUIRED.strip()


def test_it_prints_everything_and_writes_nothing(command: Command, tmp_path: Path):
    ended = command("configure", "--print", "--all", "-s", "local_cwd, kubernetes")
    assert ended.out.startswith("[local_cwd]\nlog_dir = None\n")
    assert "[kubernetes]" in ended.out
    assert not (tmp_path / ".torchxconfig").exists()


def test_a_file_that_is_there_is_kept(command: Command, tmp_path: Path):
    path = tmp_path / ".torchxconfig"
    path.write_text("mine")
    ended = command("configure")
    assert (ended.code, path.read_text()) == (2, "mine")
    assert "exists already: --print shows what would be written, --force replaces it" in ended.err
    for kept in (".torchxconfig.bak", ".torchxconfig.bak2"):
        assert command("configure", "--force", "-s", "kubernetes").code == 0
        assert (tmp_path / kept).exists()
    assert (tmp_path / ".torchxconfig.bak").read_text() == "mine"
    assert (tmp_path / ".torchxconfig.bak2").read_text() == path.read_text()


def test_an_unknown_scheduler_is_refused_with_the_valid_ones(command: Command, tmp_path: Path):
    ended = command("configure", "-s", "local")
    assert (ended.code, "local_cwd" in ended.err) == (2, True)
    assert not (tmp_path / ".torchxconfig").exists()


def test_a_folder_that_cannot_be_written_is_named(command: Command, tmp_path: Path, monkeypatch):
    (tmp_path / ".torchxconfig.bak").mkdir()
    monkeypatch.chdir("/proc")
    ended = command("configure")
    assert (ended.code, "/proc/.torchxconfig cannot be written" in ended.err) == (2, True)
