"""Logs that go with their app: what was read is read to its end before the app is cancelled, in bounded time."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

from support.reading import HANDLE, as_shown, numbered
from support.streaming import RecordScheduler
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.logs.spool import replica_spool as spool
from torchx_tui.logs.spool import spools
from torchx_tui.logs.spool.reader import SpooledLog


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


def test_what_was_read_is_completed_before_the_cancel(instance, quick_retries, monkeypatch):
    # The last line is of just now. A thread that is late is not taken for one that has nothing more to read.
    at = 1_700_000_000 + 499 / 4
    clock = SimpleNamespace(time=lambda: at, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(spools, "time", clock)
    monkeypatch.setattr(spool, "QUIET_S", NEVER)
    monkeypatch.setattr(spools, "LAST_LINES_TIMEOUT_S", NEVER)
    scheduler = LosingScheduler(replicas=3)
    for k in (0, 1, 2):
        scheduler.write(k, *numbered(0, 10))
    one = instance(scheduler)
    followed = one.read(0)
    followed.wait_for(as_shown(numbered(0, 10)))
    # One that was read before, which nobody reads any more, and one that nobody ever read.
    left = one.logs()[1]
    assert isinstance(left.spool, SpooledLog)
    kept = left.spool.acquire("combined")
    wait_until(lambda: kept.size > 0, "its first lines", PATIENCE)
    left.spool.release("combined")
    wait_until(lambda: scheduler.reading == 1, "the end of its stream", PATIENCE)
    for k in (0, 1, 2):
        scheduler.write(k, *numbered(10, 500))
    one.runner.cancel(HANDLE)
    assert scheduler.lines[1] == []
    followed.wait_for(as_shown(numbered(0, 500)))
    one.read(1).wait_for(as_shown(numbered(0, 500)))
    assert scheduler.opened == 3


def test_a_log_that_does_not_come_holds_a_cancel_up_for_seconds_only(instance, monkeypatch):
    monkeypatch.setattr(spools, "LAST_LINES_TIMEOUT_S", 0.4)
    scheduler = LosingScheduler()
    scheduler.write(0, "here\n")
    one = instance(scheduler)
    one.read().wait_for([b"here"])
    stop = threading.Event()

    def chatter():
        # It prints old lines for ever: it is never up to date, and never quiet.
        while not stop.wait(0.01):
            scheduler.write(0, "more\n")

    thread = threading.Thread(target=chatter)
    thread.start()
    try:
        began = time.monotonic()
        one.runner.cancel(HANDLE)
        assert 0.3 < time.monotonic() - began < PATIENCE
        assert scheduler.state.name == "CANCELLED"
    finally:
        stop.set()
        thread.join()


def test_logs_that_stay_hold_nothing_up(instance):
    scheduler = RecordScheduler()
    scheduler.write(0, "here\n")
    one = instance(scheduler)
    one.read().wait_for([b"here"])
    opened = scheduler.opened
    one.runner.cancel(HANDLE)
    assert scheduler.opened == opened
