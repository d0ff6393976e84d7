"""Words of progress from a launch, and its end before anything runs."""

from __future__ import annotations

import threading

import pytest

from torchx_tui.backends.progress import Progress, current_progress, shown_progress
from torchx_tui.specs import LaunchCancelledError


def test_words_reach_who_launches():
    said: list[str] = []
    with shown_progress(Progress(said.append)):
        current_progress().report("pulling 1 of 3")
    current_progress().report("nobody hears this")
    assert said == ["pulling 1 of 3"]


def test_a_cancelled_launch_ends_at_its_next_word():
    progress = Progress(lambda text: None)
    progress.cancel()
    with pytest.raises(LaunchCancelledError):
        progress.report("building")


def test_what_waits_is_ended_at_once():
    progress, closed = Progress(lambda text: None), threading.Event()
    entered = threading.Event()

    def launch() -> None:
        with progress.ended_by(closed.set):
            entered.set()
            assert closed.wait(20)
            raise OSError("the connection was closed")

    failures: list[BaseException] = []

    def run() -> None:
        try:
            launch()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(20)
    progress.cancel()
    thread.join(20)
    assert [type(failure) for failure in failures] == [LaunchCancelledError]


def test_a_failure_of_its_own_stays_one():
    with pytest.raises(OSError, match="refused"), Progress(lambda text: None).ended_by(lambda: None):
        raise OSError("refused")
