"""Saving a log to a file: what is written, how it is asked for, and what goes wrong."""

import os
import subprocess
import threading
import time

import pytest
from log_app import logs_of
from log_writing import LogWriter
from support.screens import text_of
from support.waiting import PATIENCE
from textual.widgets import Input

from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs import save as save_module
from torchx_tui.tui.logs.export import ExportError
from torchx_tui.tui.logs.save import save, save_path
from torchx_tui.tui.logs.save_dialog import SaveDialog
from torchx_tui.tui.logs.text import LineForm
from torchx_tui.tui.ui.choice_field import ChoiceField

SIZE = (120, 24)


@pytest.fixture(autouse=True)
def utc(zone):
    zone("UTC")


@pytest.fixture
def logs(tmp_path):
    """Return two replicas whose lines take turns; one has colours, a progress bar, and no last line feed."""
    writers = [LogWriter(tmp_path, k) for k in range(2)]
    for number in range(3):
        writers[0].write(b"zero %d\n" % number, at=1000.25 + number)
        writers[1].write(b"\x1b[31mone\x1b[0m %d\x07\n" % number, "e", at=1000.5 + number)
    writers[1].write(b"10%\r100%", at=1010)
    return [writer.log for writer in writers]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.log"


def printed(folder, text):
    """Return the log of one replica that has printed a text."""
    source = folder / "out"
    source.write_text(text)
    return ReplicaLog("r", 0, stdout=source)


def carried_out(log, path, form=None):
    """Carry out all steps of saving; return what it says."""
    work = save(log, path, form, replace=True)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def test_shown_lines_are_saved_with_times_and_numbers(path, logs):
    saved = carried_out(MergedLog(logs), path, LineForm((0, 1), "clock"))
    assert path.read_text().splitlines() == [
        "00:16:40 0| zero 0", "00:16:40 1| one 0", "00:16:41 0| zero 1", "00:16:41 1| one 1",
        "00:16:42 0| zero 2", "00:16:42 1| one 2", "00:16:50 1| 100%",
    ]  # fmt: skip
    assert str(saved) == f"Saved 7 lines, {path.stat().st_size} B, to {path}"
    for form, number, line in (
        (LineForm((0,), "date"), 0, "1970-01-01 00:16:40.250 zero 0"),
        (LineForm((0,), "relative", 1000.25), 2, "+0:00:02 zero 2"),
    ):
        carried_out(MergedLog(logs[:1]), path, form)
        assert path.read_text().splitlines()[number] == line


def test_printed_lines_are_saved_byte_for_byte(path, logs):
    assert carried_out(MergedLog(logs[1:]), path).lines == 4
    assert path.read_bytes() == logs[1].combined.read_bytes()
    carried_out(MergedLog(logs), path)
    assert path.read_bytes().startswith(b"zero 0\n\x1b[31mone\x1b[0m 0\x07\nzero 1\n")


def test_large_log_is_saved_whole_as_printed_and_as_shown(tmp_path, path):
    text = "".join(f"line {number} {'x' * (number % 200)}\n" for number in range(60_000)) + "y" * 400_000 + "\nend"
    log = printed(tmp_path, text)
    assert carried_out(MergedLog([log]), path).lines == 60_002
    assert path.read_text() == text
    carried_out(MergedLog([log]), path, LineForm((0,)))
    assert path.read_text() == text + "\n"


def test_filters_are_for_shown_not_for_printed_lines(path, logs):
    rules = [Rule(parse_pattern("zero"), keep=False)]
    carried_out(Matches(MergedLog(logs), rules), path, LineForm((0, 1)))
    assert path.read_text().splitlines() == ["1| one 0", "1| one 1", "1| one 2", "1| 100%"]
    carried_out(Matches(MergedLog(logs), rules), path)
    assert path.read_bytes().startswith(b"zero 0\n")


def test_filter_that_keeps_most_of_a_large_log(tmp_path, path):
    lines = [f"line {number}\n" for number in range(100_000)]
    log = Matches(MergedLog([printed(tmp_path, "".join(lines))]), [Rule(parse_pattern("7"), keep=False)])
    started = time.process_time()
    carried_out(log, path, LineForm((0,)))
    assert path.read_text() == "".join(line for line in lines if "7" not in line)
    # Each kept line alone reads its whole block: minutes.
    assert time.process_time() - started < 30


def test_file_that_is_there_is_replaced_only_when_asked(tmp_path, path, logs):
    path.write_text("precious")
    path.chmod(0o640)
    with pytest.raises(ExportError, match="exists now: save again to replace it"):
        list(save(MergedLog(logs), path, LineForm(), replace=False))
    assert path.read_text() == "precious"
    carried_out(MergedLog(logs), path, LineForm())
    assert "zero 0" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".saved")]


def test_stopped_half_way_nothing_is_left_and_the_old_file_stays(tmp_path, path, logs):
    old = tmp_path / "old.log"
    old.write_text("precious")
    for target in (path, old):
        work = save(MergedLog(logs), target, LineForm(), replace=True)
        next(work)
        work.close()
    assert old.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["old.log", "trainer"]


@pytest.fixture
def tiny_disk(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, tiny_disk):
    words = r"saved\.log cannot be written: No space left on device; the partial file was removed"
    with pytest.raises(ExportError, match=words):
        carried_out(MergedLog([printed(tmp_path, "x" * 500_000)]), tiny_disk / "saved.log")
    assert list(tiny_disk.iterdir()) == []


def test_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert [save_path(text) for text in ("~/a.log", " b.log ")] == [tmp_path / "a.log", tmp_path / "b.log"]
    for text, words in (
        ("", "type the path"), (str(tmp_path), "is a folder: add the name"), ("/dev/null", "is not a regular file"),
        ("no/such/x.log", f"there is no folder {tmp_path}/no/such"), ("a\0b", "is not a path"),
        ("x" * 5000, "is not a path"),
    ):  # fmt: skip
        with pytest.raises(ExportError, match=words):
            save_path(text)


async def ask(pane, path):
    """Open the dialog, and type a path."""
    dialog = await pane.dialog(SaveDialog, "S")
    await pane.until(lambda: dialog.query_one(Input).has_focus, "the field")
    dialog.query_one(Input).value = str(path)
    await pane.pilot.pause()
    return dialog


async def saved(pane, words):
    await pane.until(lambda: pane.app.said and pane.app.said[-1].startswith(words), words)


async def test_dialog_saves_what_is_shown_or_all_of_it(path, logs):
    async with logs_of(*logs, size=SIZE, count=7) as pane:
        pane.pane.job_name = "llama/3 [x]"
        await pane.press("1")
        await pane.counted(4)
        dialog = await pane.dialog(SaveDialog, "S")
        assert dialog.query_one(Input).value == "llama_3__x_-1.log"
        await pane.back("escape")
        dialog = await ask(pane, path.parent / "none" / "x.log")
        await pane.press(
            "enter", until=lambda: "there is no folder" in text_of(dialog, "#save-words"), what="what is wrong"
        )
        dialog.query_one(Input).value = str(path)
        await pane.press("enter")
        await saved(pane, f"Saved 4 lines, 59 B, to {path}")
        assert path.read_text().splitlines()[0] == "00:16:40 one 0"
        path.unlink()
        dialog = await ask(pane, path)
        dialog.query_one(ChoiceField).focus()
        await pane.press("right")
        dialog.query_one(Input).focus()
        await pane.press("enter")
        await saved(pane, "Saved 7 lines")
        assert path.read_text().splitlines()[1] == "1970-01-01 00:16:40.500 1| one 0"


async def test_dialog_asks_before_it_replaces_a_file(path, logs):
    path.write_text("precious")
    async with logs_of(*logs, size=SIZE, count=7) as pane:
        # The harmless button has the focus: enter once more saves nothing.
        for key, text in ("enter", "precious"), ("y", "zero 0"):
            dialog = await ask(pane, path)
            await pane.press(
                "enter",
                until=lambda dialog=dialog: "exists already" in text_of(dialog, "#save-words"),
                what="the question",
            )
            await pane.until(lambda: pane.app.focused is not None and pane.app.focused.id == "keep", "its buttons")
            await pane.back(key)
            if key == "y":
                await saved(pane, "Saved 7 lines")
            assert text in path.read_text()


@pytest.mark.parametrize("leave", ["escape", "app"])
async def test_esc_and_leaving_stop_it_and_nothing_is_left(tmp_path, path, monkeypatch, leave):
    gathered = save_module._gathered

    # There is no other way to be in the middle of it for long.
    def without_end(parts):
        yield from gathered(parts)
        while True:
            time.sleep(0.01)
            yield b"", 0

    monkeypatch.setattr(save_module, "_gathered", without_end)
    log = printed(tmp_path, "".join(f"line {number}\n" for number in range(50_000)))
    async with logs_of(log, size=SIZE, count=50_000) as pane:
        await ask(pane, path)
        await pane.press("enter", until=lambda: path.exists() and path.stat().st_size, what="the file")
        await pane.until(lambda: "Saving 100 %   esc stops it" in pane.app.said, "the progress")
        (saving,) = (thread for thread in threading.enumerate() if thread.name == "log-export")
        if leave == "escape":
            await pane.press("escape")
            await saved(pane, "Saving was stopped: the partial file was removed")
    saving.join(PATIENCE)
    assert not saving.is_alive()
    assert not path.exists()
