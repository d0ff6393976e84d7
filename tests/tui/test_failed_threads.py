"""Threads and workers of the dashboard that fail: the status line says so."""

from __future__ import annotations

import logging
import threading

from support.canned import CannedScheduler
from support.dashboard import make_app, screen_text, until

from torchx_tui.tui.watch.signals import RowsChanged


async def test_failed_thread_is_in_the_status_line(tmp_path, caplog):
    app = make_app(CannedScheduler(), tmp_path)
    before = threading.excepthook

    def fail() -> None:
        raise PermissionError(13, "Permission denied", "/\x1b[2Jrestricted[red]")

    async with app.run_test(size=(160, 40)) as pilot:
        threading.Thread(target=fail, name="read-history").start()
        await until(pilot, lambda: "restricted[red]: Permission denied" in screen_text(app), "the failure")
        assert "[red]" in screen_text(app)
        assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
    assert threading.excepthook is before


async def test_journal_that_cannot_be_read_is_shown(tmp_path, monkeypatch):
    app = make_app(CannedScheduler(), tmp_path)

    def fail(handles: object) -> object:
        raise KeyError("no such record")

    monkeypatch.setattr(app.runner.journal, "find_all", fail)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.press("H")
        app.signals.rows.publish(RowsChanged(removed=["local_cwd://torchx/old-1"]))
        await until(pilot, lambda: "history: KeyError" in screen_text(app), "the failure")
