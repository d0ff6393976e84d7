"""Saving a log to a file: what is written, how it is asked for, and what goes wrong."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from support.waiting import PATIENCE
from textual.pilot import Pilot
from textual.widgets import Input, Static

from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.logs.view.filtering import FilteredLog, Rule
from torchx_tui.logs.view.merge import MergedLog
from torchx_tui.tui.logs import save as save_module
from torchx_tui.tui.logs.export import ExportError, ExportTold
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.reading import AnyLog
from torchx_tui.tui.logs.save import Saved, save, save_path
from torchx_tui.tui.logs.save_dialog import SaveDialog
from torchx_tui.tui.logs.text import LineForm
from torchx_tui.tui.ui.choice_field import ChoiceField


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def logs(tmp_path: Path) -> list[ReplicaLog]:
    """Two replicas whose lines take turns, one of them with colours, a progress bar, and no last line feed."""
    writers = [LogWriter(tmp_path, k) for k in range(2)]
    for number in range(3):
        writers[0].write(b"zero %d\n" % number, at=1000.25 + number)
        writers[1].write(b"\x1b[31mone\x1b[0m %d\x07\n" % number, "e", at=1000.5 + number)
    writers[1].write(b"10%\r100%", at=1010)
    return [writer.log for writer in writers]


def carried_out(log: AnyLog, path: Path, form: LineForm | None, *, replace: bool = False) -> Saved:
    """Carry out all steps of saving."""
    work = save(log, path, form, replace=replace)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def test_what_is_shown_is_saved_with_times_and_numbers(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path = tmp_path / "saved.log"
    saved = carried_out(MergedLog(logs), path, LineForm((0, 1), "clock"))
    assert path.read_text().splitlines() == [
        "00:16:40 0| zero 0", "00:16:40 1| one 0", "00:16:41 0| zero 1", "00:16:41 1| one 1",
        "00:16:42 0| zero 2", "00:16:42 1| one 2", "00:16:50 1| 100%",
    ]  # fmt: skip
    assert str(saved) == f"Saved 7 lines, {path.stat().st_size} B, to {path}"


def test_dates_and_relative_times(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path = tmp_path / "saved.log"
    carried_out(MergedLog(logs[:1]), path, LineForm((0,), "date"))
    assert path.read_text().splitlines()[0] == "1970-01-01 00:16:40.250 zero 0"
    carried_out(MergedLog(logs[:1]), path, LineForm((0,), "relative", 1000.25), replace=True)
    assert path.read_text().splitlines()[2] == "+0:00:02 zero 2"


def test_what_was_printed_is_saved_byte_for_byte(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path = tmp_path / "saved.log"
    saved = carried_out(MergedLog(logs[1:]), path, None)
    assert logs[1].combined is not None
    assert path.read_bytes() == logs[1].combined.read_bytes()
    assert saved.lines == 4
    carried_out(MergedLog(logs), path, None, replace=True)
    assert path.read_bytes().startswith(b"zero 0\n\x1b[31mone\x1b[0m 0\x07\nzero 1\n")


def test_a_large_log_is_saved_whole_as_printed_and_as_shown(tmp_path: Path) -> None:
    source = tmp_path / "out"
    text = "".join(f"line {number} {'x' * (number % 200)}\n" for number in range(60_000)) + "y" * 400_000 + "\nend"
    source.write_text(text)
    path = tmp_path / "saved.log"
    saved = carried_out(MergedLog([ReplicaLog("r", 0, stdout=source)]), path, None)
    assert path.read_text() == text
    assert saved.lines == 60_002
    carried_out(MergedLog([ReplicaLog("r", 0, stdout=source)]), path, LineForm((0,)), replace=True)
    assert path.read_text() == text + "\n"


def test_filters_hold_for_what_is_shown_not_for_what_was_printed(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path = tmp_path / "saved.log"
    rules = [Rule(parse_pattern("zero"), keep=False)]
    carried_out(FilteredLog(MergedLog(logs), rules), path, LineForm((0, 1)))
    assert path.read_text().splitlines() == ["1| one 0", "1| one 1", "1| one 2", "1| 100%"]
    carried_out(FilteredLog(MergedLog(logs), rules), path, None, replace=True)
    assert path.read_bytes().startswith(b"zero 0\n")


def test_a_filter_that_keeps_most_of_a_large_log(tmp_path: Path) -> None:
    source = tmp_path / "out"
    source.write_text("".join(f"line {number}\n" for number in range(100_000)))
    path = tmp_path / "saved.log"
    log = FilteredLog(MergedLog([ReplicaLog("r", 0, stdout=source)]), [Rule(parse_pattern("7"), keep=False)])
    started = time.process_time()
    carried_out(log, path, LineForm((0,)))
    assert path.read_text() == "".join(f"line {n}\n" for n in range(100_000) if "7" not in str(n))
    # Each kept line alone reads its whole block: minutes.
    assert time.process_time() - started < 30


def test_a_file_that_is_there_is_never_replaced_unasked(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path = tmp_path / "saved.log"
    path.write_text("precious")
    path.chmod(0o640)
    with pytest.raises(ExportError, match="exists now: save again to replace it"):
        carried_out(MergedLog(logs), path, LineForm())
    assert path.read_text() == "precious"
    carried_out(MergedLog(logs), path, LineForm(), replace=True)
    assert "zero 0" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".saved")]


def test_stopped_half_way_nothing_is_left_and_the_old_file_stays(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    path, old = tmp_path / "new.log", tmp_path / "old.log"
    old.write_text("precious")
    for target in (path, old):
        work = save(MergedLog(logs), target, LineForm(), replace=True)
        next(work)
        work.close()
    assert not path.exists()
    assert old.read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["old.log", "trainer"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, tiny_disk: Path) -> None:
    source = tmp_path / "out"
    source.write_bytes(b"x" * 500_000)
    with pytest.raises(
        ExportError, match=r"saved\.log cannot be written: No space left on device; the partial file was removed"
    ):
        carried_out(MergedLog([ReplicaLog("r", 0, stdout=source)]), tiny_disk / "saved.log", None)
    assert list(tiny_disk.iterdir()) == []


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert save_path("~/a.log") == tmp_path / "a.log"
    assert save_path(" b.log ") == tmp_path / "b.log"
    for text, said in (
        ("", "type the path"), (str(tmp_path), "is a folder: add the name"), ("/dev/null", "is not a regular file"),
        ("no/such/x.log", f"there is no folder {tmp_path}/no/such"), ("a\0b", "is not a path"),
        ("x" * 5000, "is not a path"),
    ):  # fmt: skip
        with pytest.raises(ExportError, match=said):
            save_path(text)


class SaveApp(LogApp):
    """Keeps what the pane says."""

    CSS = "Input { height: 1; border: none; }"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.said: list[str] = []

    def on_log_pane_said(self, message: LogPane.Said) -> None:
        self.said.append(message.text)


async def ask(pilot: Pilot, app: SaveApp, path: Path) -> SaveDialog:
    await pilot.press("S")
    await app.until(lambda: isinstance(app.screen, SaveDialog) and app.screen.query_one(Input).has_focus)
    dialog = app.screen
    assert isinstance(dialog, SaveDialog)
    dialog.query_one(Input).value = str(path)
    await pilot.pause()
    return dialog


async def test_the_dialog_saves_what_is_shown(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    app = SaveApp(logs)
    path = tmp_path / "saved.log"
    async with app.run_test(size=(120, 24)) as pilot:
        await app.until(lambda: len(app.rows()) == 7)
        app.pane.job_name = "llama/3 [x]"
        await pilot.press("1")
        await app.until(lambda: len(app.rows()) == 4)
        await pilot.press("S")
        await app.until(lambda: isinstance(app.screen, SaveDialog))
        assert app.screen.query_one(Input).value == "llama_3__x_-1.log"
        await pilot.press("escape")
        await ask(pilot, app, path)
        await pilot.press("enter")
        await app.until(lambda: app.said and app.said[-1] == f"Saved 4 lines, 59 B, to {path}")
        assert path.read_text().splitlines()[0] == "00:16:40 one 0"


async def test_the_dialog_saves_all_of_it_or_as_printed(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    app = SaveApp(logs)
    path = tmp_path / "saved.log"
    async with app.run_test(size=(120, 24)) as pilot:
        await app.until(lambda: len(app.rows()) == 7)
        await pilot.press("1")
        await app.until(lambda: len(app.rows()) == 4)
        dialog = await ask(pilot, app, path)
        dialog.query_one(ChoiceField).focus()
        await pilot.press("right")
        dialog.query_one(Input).focus()
        await pilot.press("enter")
        await app.until(lambda: app.said and app.said[-1].startswith("Saved 7 lines"))
        assert path.read_text().splitlines()[1] == "1970-01-01 00:16:40.500 1| one 0"


async def test_the_dialog_asks_before_it_replaces_a_file(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    app = SaveApp(logs)
    path = tmp_path / "saved.log"
    path.write_text("precious")
    async with app.run_test(size=(120, 24)) as pilot:
        await app.until(lambda: len(app.rows()) == 7)
        dialog = await ask(pilot, app, path)
        words = dialog.query_one("#save-words", Static)
        await pilot.press("enter")
        await app.until(lambda: "exists already" in str(words.content))
        # The harmless button has the focus: enter once more saves nothing.
        await app.until(lambda: app.focused is not None and app.focused.id == "keep")
        await pilot.press("enter")
        await app.until(lambda: not isinstance(app.screen, SaveDialog))
        assert path.read_text() == "precious"
        dialog = await ask(pilot, app, path)
        await pilot.press("enter")
        await app.until(lambda: app.focused is not None and app.focused.id == "keep")
        await pilot.press("y")
        await app.until(lambda: app.said and app.said[-1].startswith("Saved 7 lines"))
        assert "zero 0" in path.read_text()


async def test_the_dialog_says_what_is_wrong_with_a_path(tmp_path: Path, logs: list[ReplicaLog]) -> None:
    app = SaveApp(logs)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.until(lambda: len(app.rows()) == 7)
        dialog = await ask(pilot, app, tmp_path / "none" / "x.log")
        await pilot.press("enter")
        await app.until(lambda: "there is no folder" in str(dialog.query_one("#save-words", Static).content))
        assert isinstance(app.screen, SaveDialog)


@pytest.mark.parametrize("leave", ["escape", "app"])
async def test_esc_and_leaving_stop_it_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leave: str
) -> None:
    source, path = tmp_path / "out", tmp_path / "saved.log"
    source.write_bytes(b"".join(b"line %d\n" % number for number in range(300_000)))
    gathered = save_module._gathered

    def without_end(parts: Iterator[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
        yield from gathered(parts)
        while True:
            time.sleep(0.01)
            yield b"", 0

    monkeypatch.setattr(save_module, "_gathered", without_end)
    app = SaveApp([ReplicaLog("r", 0, stdout=source)])
    async with app.run_test(size=(120, 24)) as pilot:
        await app.until(lambda: app.rows())
        await ask(pilot, app, path)
        await pilot.press("enter")
        await app.until(lambda: path.exists() and path.stat().st_size)
        await app.until(lambda: any(text.startswith("Saving") and "esc stops it" in text for text in app.said))
        saving = app.pane._output._saving
        assert saving is not None
        for share, words in (
            (None, "Saving   esc stops it"),
            (0.071, "Saving 7 %   esc stops it"),
            (1.0, "Saving 100 %   esc stops it"),
        ):
            app.pane.post_message(ExportTold(saving, share))
            await app.until(lambda words=words: words in app.said)
        if leave == "escape":
            await pilot.press("escape")
            await app.until(lambda: app.said[-1] == "Saving was stopped: the partial file was removed")
    assert saving.join(PATIENCE)
    assert not path.exists()
