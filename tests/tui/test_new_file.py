"""Files that screens save into a folder that others may write to."""

from pathlib import Path

import pytest

from torchx_tui.tui.ui.new_file import write_new_file


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_saving_takes_the_first_free_name(folder):
    assert [write_new_file("job-a", "txt", text) for text in "ab"] == [Path("job-a.txt"), Path("job-a-1.txt")]
    assert (folder / "job-a.txt").read_text() == "a"


def test_saving_follows_no_planted_link(folder):
    (folder / "job-a.txt").symlink_to(folder / "missing")
    write_new_file("job-a", "txt", "text")
    assert not (folder / "missing").exists()


@pytest.mark.parametrize(("name", "file"), [("../x", "_x.txt"), ("a\x1b[2Jb", "ab.txt"), ("", "job.txt")])
def test_saving_makes_a_safe_name(name, file):
    assert write_new_file(name, "txt", "text") == Path(file)
