"""Where state is kept, and files that are replaced as a whole."""

import getpass
import os
import pwd
from pathlib import Path

import pytest

from torchx_tui.base.files import cache_folder, config_folder, private_folder, state_folder, user_name, write_private


@pytest.mark.parametrize("variable", ["LOGNAME", "USER", "LNAME", "USERNAME", None])
def test_the_user_is_named_as_python_names_them(variable, monkeypatch):
    for other in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(other, raising=False)
    if variable:
        monkeypatch.setenv(variable, "alice")
    assert user_name() == getpass.getuser()


def test_a_user_without_a_name_has_a_number(monkeypatch):
    def unknown(_uid):
        raise KeyError

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert user_name() == str(os.getuid())


def test_xdg_folders(monkeypatch, tmp_path):
    for number, kind in enumerate(("STATE", "CACHE", "CONFIG")):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / str(number)))
    found = [state_folder(), cache_folder(), config_folder()]
    assert found == [tmp_path / str(number) / "torchx-tui" for number in range(3)]
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert config_folder() == Path.home() / ".config" / "torchx-tui"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert config_folder() == Path.home() / ".config" / "torchx-tui"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert state_folder() == Path.home() / ".local" / "state" / "torchx-tui"
    assert cache_folder() == Path.home() / ".cache" / "torchx-tui"


def test_private_folder_makes_parents_for_this_user_alone(tmp_path):
    private_folder(tmp_path / "a" / "b")
    assert os.stat(tmp_path / "a").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "a" / "b").st_mode & 0o777 == 0o700


def test_write_replaces_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "file"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_private(path, b"one")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]
