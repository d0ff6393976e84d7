"""Logs that go with their app: what was read is read to its end before the app is cancelled, in bounded time."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

from support.reading import HANDLE, as_shown, numbered
from support.streaming import RecordScheduler
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.logs.spool import spools


class LosingScheduler(RecordScheduler):
    """Drops the logs of an app that it ends, as Volcano does with its pods."""

    capabilities = replace(RecordScheduler.capabilities, logs_after_cancel="They are gone.")

    def _cancel_existing(self, app_id):
        with self.changed:
            for k in range(self.replicas):
                self.lines[k] = []
            self.cuts = {k: self.cuts[k] + 1 for k in range(self.replicas)}
            self.failure = ConnectionError("its pod was deleted")
        super()._cancel_existing(app_id)


def test_read_logs_are_completed_before_the_cancel(instance, quick_retries, monkeypatch):
    # The last line is of just now. A thread that is late is not taken for one that has nothing more to read.
    at = 1_700_000_000 + 499 / 4
    monkeypatch.setattr(spools, "time", SimpleNamespace(time=lambda: at, monotonic=time.monotonic, sleep=time.sleep))
    monkeypatch.setattr(spools, "QUIET_S", NEVER)
    monkeypatch.setattr(spools, "LAST_LINES_TIMEOUT_S", NEVER)
    one = instance(LosingScheduler(replicas=3))
    scheduler = one.scheduler
    for k in range(3):
        scheduler.write(k, *numbered(0, 10))
    followed = one.read(0)
    followed.wait_for(as_shown(numbered(0, 10)))
    # Nobody reads the second one any more, and nobody ever read the third.
    left = one.read(1)
    left.wait_for(as_shown(numbered(0, 10)))
    left.close()
    wait_until(lambda: scheduler.reading == 1, "the end of its stream", PATIENCE)
    for k in range(3):
        scheduler.write(k, *numbered(10, 500))
    one.runner.job(HANDLE).cancel()
    assert scheduler.lines[1] == []
    followed.wait_for(as_shown(numbered(0, 500)))
    one.read(1).wait_for(as_shown(numbered(0, 500)))
    assert scheduler.opened == 3


def test_endless_log_delays_a_cancel_for_seconds_only(instance, monkeypatch):
    monkeypatch.setattr(spools, "LAST_LINES_TIMEOUT_S", 0.4)
    one = instance(LosingScheduler())
    one.scheduler.write(0, "here\n")
    one.read().wait_for([b"here"])
    stop = threading.Event()

    def chatter():
        # Old lines forever: it is never up to date, and never quiet.
        while not stop.wait(0.01):
            one.scheduler.write(0, "more\n")

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        began = time.monotonic()
        one.runner.job(HANDLE).cancel()
        assert 0.3 < time.monotonic() - began < PATIENCE
        assert one.scheduler.state.name == "CANCELLED"
    finally:
        stop.set()
        thread.join()


def test_lasting_logs_do_not_delay_a_cancel(instance):
    one = instance()
    one.scheduler.write(0, "here\n")
    one.read().wait_for([b"here"])
    opened = one.scheduler.opened
    one.runner.job(HANDLE).cancel()
    assert one.scheduler.opened == opened
