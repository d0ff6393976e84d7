"""The current folder was removed, or there is no home folder: words, and whatever can be done is done."""

from __future__ import annotations

import os
import pwd

import pytest
from support.canned import CannedScheduler
from support.command import Ended
from support.dashboard import make_app, screen_text, until

FOLDER_WORDS = "torchx-tui: the current folder was deleted: change to another folder\n"
HOME_WORDS = f"torchx-tui: there is no home folder: HOME is not set, and user {os.getuid()} is not in the password"
XDG = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
WORK = [("builtins",), ("runopts", "local_cwd"), ("doctor",), ("configure", "--print"), ("list", "-s", "local_cwd")]
NEED_FOLDER = [("run", "-s", "local_cwd", "utils.echo"), ("run", "-s", "local_cwd", "--dryrun", "utils.echo")]
UNKNOWN = "local_cwd://torchx/none-x"
OF_JOBS = [(name, UNKNOWN) for name in ("status", "describe", "log", "cancel", "delete", "wait")]


def assert_plain(ended: Ended) -> None:
    for text in (ended.out, ended.err):
        assert "Traceback" not in text
        assert "Errno" not in text
        assert "RuntimeError" not in text


@pytest.fixture
def gone(tmp_path, command, monkeypatch):
    """Stand in a folder that was removed."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.fixture
def homeless(monkeypatch):
    """Be a user without a home folder."""

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for variable in ("HOME", *XDG):
        monkeypatch.delenv(variable)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        *((argv, 0, "") for argv in WORK),
        *((argv, 2, FOLDER_WORDS) for argv in (*NEED_FOLDER, ("configure",))),
        *((argv, 1, "is not known") for argv in OF_JOBS),
    ],
)
def test_deleted_folder(gone, command, argv, code, words):
    ended = command(*argv)
    # There may be no Docker for doctor.
    assert ended.code == code or (argv == ("doctor",) and ended.code == 1)
    assert (words in ended.err, FOLDER_WORDS in ended.err) == (True, words == FOLDER_WORDS)
    assert_plain(ended)


@pytest.mark.parametrize("argv", [*OF_JOBS, *NEED_FOLDER, ("list", "-s", "local_cwd")], ids=" ".join)
def test_without_a_home_folder(homeless, command, argv):
    ended = command(*argv)
    assert (ended.code, ended.err.startswith(HOME_WORDS), "Set HOME, or XDG_STATE_HOME" in ended.err) == (2, True, True)


@pytest.mark.parametrize("argv", [*WORK, ("run", "-s", "local_cwd", "--wait", "utils.echo")], ids=" ".join)
def test_with_a_state_folder_alone(homeless, command, argv, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ended = command(*argv)
    assert ended.code in ((0, 1) if argv == ("doctor",) else (0,))
    assert_plain(ended)
    config = tmp_path / "config.toml"
    config.write_text("read_only = true\n")
    assert command("--config", str(config), "list", "-s", "local_cwd").code == 0


async def test_the_dashboard_in_a_folder_that_is_gone(gone, tmp_path):
    app = make_app(CannedScheduler(), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "utils.echo" in screen_text(app), "the components")
        await pilot.press("escape")
    assert app.return_code in (0, None)


def test_configure_names_a_folder_that_cannot_be_written(command, monkeypatch):
    monkeypatch.chdir("/proc")
    ended = command("configure")
    assert (ended.code, "/proc/.torchxconfig cannot be written" in ended.err) == (2, True)
