"""Exceptions that end threads are logged and shown."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from torchx_tui.base.threads import report_thread_failures


@pytest.fixture
def shown():
    sentences: list[str] = []
    restore = report_thread_failures(sentences.append)
    yield sentences
    restore()


def run(act: Callable[[], object], name: str = "read-history") -> None:
    thread = threading.Thread(target=act, name=name)
    thread.start()
    thread.join()


def fail() -> None:
    raise PermissionError(13, "Permission denied", "/restricted")


def test_failure_of_a_thread_is_shown_and_logged(shown, caplog):
    run(fail)
    assert shown == ["read-history stopped: /restricted: Permission denied; see the log file"]
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert isinstance(record.exc_info, tuple)
    assert record.exc_info[2] is not None


def test_thread_that_leaves_the_program_is_shown(shown):
    run(lambda: sys.exit("a plugin that leaves"))
    assert shown == ["read-history stopped: SystemExit: a plugin that leaves; see the log file"]


def test_failure_of_a_timer_is_shown(shown):
    timer = threading.Timer(0, fail)
    timer.name = "write-ui-state"
    timer.start()
    timer.join()
    assert shown[0].startswith("write-ui-state stopped: /restricted")


def test_same_failure_is_shown_once_and_logged_each_time(shown, caplog):
    for _ in range(3):
        run(fail)
    assert len(shown) == 1
    assert len(caplog.records) == 3


def test_restore_brings_back_the_reporter_before():
    before = threading.excepthook
    report_thread_failures(lambda _: None)()
    assert threading.excepthook is before
