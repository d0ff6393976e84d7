"""Folders of state and caches that another user owns are refused at start."""

import os

import pytest

SOMEBODY = 54321
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CACHE_HOME"])
def test_folder_of_another_user_is_refused(command, tmp_path, monkeypatch, variable, is_link):
    monkeypatch.setenv(variable, str(tmp_path))
    folder, own = tmp_path / "torchx-tui", tmp_path / "own"
    own.mkdir()
    folder.symlink_to(own) if is_link else folder.mkdir()
    os.chown(folder, SOMEBODY, SOMEBODY, follow_symlinks=False)
    ended = command("run", "-s", "local_cwd", "utils.echo")
    words = f"torchx-tui: {folder} belongs to user {SOMEBODY}: set {variable} to a folder of your own\n"
    assert (ended.code, ended.out, ended.err, list(folder.iterdir())) == (2, "", words, [])


def test_link_to_a_folder_of_another_user_is_refused(command, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    os.chown(other, SOMEBODY, SOMEBODY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "torchx-tui").symlink_to(other)
    ended = command("list", "-s", "local_cwd")
    assert (ended.code, f"{other} belongs to user {SOMEBODY}" in ended.err) == (2, True)
