"""Logs that are no files here: read from their scheduler, kept in a spool, shown like any other."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes import wait_until
from support.streaming import LinesScheduler, RecordScheduler

from torchx_tui.backends.logs import follow, spool, spool_feed
from torchx_tui.backends.logs.follow import LogFollower
from torchx_tui.backends.logs.merge import MergedLog
from torchx_tui.backends.logs.replica_log import ReplicaLog
from torchx_tui.backends.logs.replica_reader import StreamName
from torchx_tui.backends.logs.stream import LineCursor, Record
from torchx_tui.backends.paths import cache_folder
from torchx_tui.backends.runner import Runner

HANDLE = "fake://torchx/app"
PATIENCE = 40.0


class Reading:
    """A log that a thread follows, as the pane has it."""

    def __init__(
        self, logs: list[ReplicaLog], stream: StreamName = "combined", final: Callable[[], bool] | None = None
    ):
        self.log = MergedLog(logs, stream)
        self.changed = threading.Event()
        self.follower = LogFollower(self.log, self.changed.set, final)
        self.follower.start()

    def lines(self) -> list[bytes]:
        bounds = self.log.bounds()
        self.follower.seen()
        return [line.data for line in self.log.lines(bounds.first, bounds.end - bounds.first) if line.stream != "n"]

    def notices(self) -> list[str]:
        bounds = self.log.bounds()
        self.follower.seen()
        found = self.log.lines(bounds.first, bounds.end - bounds.first)
        return [line.data.decode() for line in found if line.stream == "n"]

    def wait_for(self, lines: list[bytes]) -> None:
        try:
            wait_until(lambda: self.lines() == lines, "the lines", PATIENCE)
        except AssertionError:
            assert self.lines() == lines

    def wait_for_notice(self, *words: str) -> str:
        def find() -> str:
            return next((text for text in self.notices() if all(word in text for word in words)), "")

        wait_until(find, f"a notice with {words}", PATIENCE)
        return find()

    def close(self) -> None:
        self.follower.close()
        assert self.follower.join(PATIENCE)


class Instance:
    """A running program with one job."""

    def __init__(self, scheduler: LinesScheduler, *, job: int = 512_000_000, total: int = 2_048_000_000):
        self.scheduler = scheduler
        self.runner = Runner(spool_limits=(job, total))
        self.runner._schedulers["fake"] = scheduler
        self._readings: list[Reading] = []

    def logs(self, handle: str = HANDLE) -> list[ReplicaLog]:
        return [self.runner.replica_log(handle, "trainer", k) for k in range(self.scheduler.replicas)]

    def read(self, *replicas: int, stream: StreamName = "combined", handle: str = HANDLE) -> Reading:
        logs = self.logs(handle)
        final = lambda: self.scheduler.describe("app").has_ended  # noqa: E731
        reading = Reading([logs[k] for k in replicas] if replicas else logs, stream, final)
        self._readings.append(reading)
        return reading

    def spool_folders(self) -> list[Path]:
        return sorted((cache_folder() / "spool").glob("*/*/*"))

    def close(self) -> None:
        for reading in self._readings:
            reading.close()
        self.runner.close()


@pytest.fixture
def instance() -> Iterator[Callable[..., Instance]]:
    made: list[Instance] = []

    def make(scheduler: LinesScheduler, **limits: int) -> Instance:
        made.append(Instance(scheduler, **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_feed, "_FIRST_RETRY", 0.02)
    monkeypatch.setattr(spool_feed, "_LAST_RETRY", 0.1)
    monkeypatch.setattr(spool_feed, "_DISK_RETRY", 0.1)


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_SMALLEST", 2000)
    monkeypatch.setattr(spool_feed, "_LOOK_AT_CAPS", 500)


def numbered(start: int, stop: int, name: str = "line") -> list[str]:
    return [f"{name} {number}\n" for number in range(start, stop)]


def as_shown(lines: list[str]) -> list[bytes]:
    return [line.rstrip("\n").encode() for line in lines]


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_a_log_is_followed_to_its_end(kind: type[LinesScheduler], instance: Callable[..., Instance]) -> None:
    scheduler = kind()
    scheduler.write(0, *numbered(0, 10))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 10)))
    scheduler.write(0, *numbered(10, 20), "not whole")
    reading.wait_for([*as_shown(numbered(0, 20)), b"not whole"])
    assert not reading.follower.ended
    scheduler.write(0, " yet\n")
    reading.wait_for([*as_shown(numbered(0, 20)), b"not whole yet"])
    scheduler.end()
    wait_until(lambda: reading.follower.ended, "the end", PATIENCE)
    assert reading.notices() == []


def test_lines_that_are_not_whole_are_not_cut_by_the_other_stream(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, "step 1", stream="o")
    scheduler.write(0, "warning\n", stream="e")
    scheduler.write(0, " done\n", stream="o")
    one = instance(scheduler)
    one.read().wait_for([b"warning", b"step 1 done"])
    one.read(stream="stderr").wait_for([b"warning"])
    one.read(stream="stdout").wait_for([b"step 1 done"])
    # All three read one stream.
    assert scheduler.opened == 1


def test_streams_of_a_scheduler_that_gives_lines_alone(instance: Callable[..., Instance]) -> None:
    class Parted(LinesScheduler):
        capabilities = RecordScheduler.capabilities

    scheduler = Parted()
    scheduler.write(0, "out\n", stream="o")
    scheduler.write(0, "err\n", stream="e")
    one = instance(scheduler)
    assert one.logs()[0].has_streams
    one.read().wait_for([b"out", b"err"])
    errors = one.read(stream="stderr")
    errors.wait_for([b"err"])
    assert errors.log.lines(errors.log.bounds().first, 1)[0].stream == "e"


def test_what_was_there_is_merged_by_time(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler(replicas=4)
    for k in range(4):
        scheduler.write(k, *numbered(0, 50, str(k)))
    reading = instance(scheduler).read()
    reading.wait_for([b"%d %d" % (k, number) for number in range(50) for k in range(4)])


def test_64_replicas_one_of_which_is_cut_off_and_comes_back(
    instance: Callable[..., Instance], quick_retries: None
) -> None:
    scheduler = RecordScheduler(replicas=64)
    for k in range(64):
        scheduler.write(k, *numbered(0, 5, str(k)))
    reading = instance(scheduler).read()
    wait_until(lambda: len(reading.lines()) == 64 * 5, "the first lines", PATIENCE)
    for round_ in range(5, 15):
        for k in range(64):
            scheduler.write(k, *numbered(round_, round_ + 1, str(k)))
        if round_ % 3 == 0:
            scheduler.cut(17)
    wait_until(lambda: len(reading.lines()) >= 64 * 15, "the last lines", PATIENCE)
    found = reading.lines()
    for k in range(64):
        assert [line for line in found if line.startswith(b"%d " % k)] == as_shown(numbered(0, 15, str(k)))
    assert scheduler.opened > 64
    scheduler.end()
    wait_until(lambda: reading.follower.ended, "the end", PATIENCE)
    assert len(reading.lines()) == 64 * 15


@pytest.mark.parametrize("kind", [LinesScheduler, RecordScheduler])
def test_a_stream_that_is_lost_for_a_while_says_so(
    kind: type[LinesScheduler],
    instance: Callable[..., Instance],
    quick_retries: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spool_feed, "_MOMENT", 0.2)
    scheduler = kind()
    scheduler.write(0, *numbered(0, 3))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 3)))
    scheduler.failure = ConnectionError("the server is away")
    scheduler.cut(0)
    reading.wait_for_notice("trainer/0", "cut off", "the server is away")
    scheduler.write(0, *numbered(3, 6))
    scheduler.failure = None
    reading.wait_for(as_shown(numbered(0, 6)))
    reading.wait_for_notice("trainer/0", "back")
    assert len(reading.notices()) == 2


def test_a_moment_without_a_stream_is_not_worth_a_word(instance: Callable[..., Instance], quick_retries: None) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 3))
    reading = instance(scheduler).read()
    reading.wait_for(as_shown(numbered(0, 3)))
    scheduler.cut(0)
    scheduler.write(0, *numbered(3, 6))
    reading.wait_for(as_shown(numbered(0, 6)))
    assert reading.notices() == []


def test_a_scheduler_without_logs_says_so(instance: Callable[..., Instance]) -> None:
    scheduler = LinesScheduler()
    scheduler.failure = NotImplementedError("fake has no logs to read")
    reading = instance(scheduler).read()
    reading.wait_for_notice("trainer/0", "fake has no logs to read")


def test_closing_a_log_ends_every_stream_at_once(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler(replicas=64)
    one = instance(scheduler)
    reading = one.read()
    wait_until(lambda: scheduler.reading == 64, "64 streams", PATIENCE)
    before = time.monotonic()
    reading.follower.close()
    assert time.monotonic() - before < 1
    wait_until(lambda: scheduler.reading == 0, "no stream", PATIENCE)
    named = [thread.name for thread in threading.enumerate()]
    wait_until(
        lambda: not any(thread.name.startswith("spool-trainer") for thread in threading.enumerate()),
        f"the threads' end: {named}",
        PATIENCE,
    )
    # Whoever comes back goes on where it was.
    scheduler.write(3, "later\n")
    again = one.read(3)
    again.wait_for([b"later"])
    assert scheduler.reading == 1


def test_several_views_share_one_stream(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, "a\n")
    scheduler.write(1, "b\n")
    one = instance(scheduler)
    merged, single = one.read(), one.read(1)
    merged.wait_for([b"a", b"b"])
    single.wait_for([b"b"])
    merged.close()
    scheduler.write(1, "c\n")
    single.wait_for([b"b", b"c"])
    assert scheduler.opened == 2
    assert len(one.spool_folders()) == 2


def test_another_replica_and_back_takes_the_stream_up_again(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, *numbered(0, 3))
    one = instance(scheduler)
    reading = one.read(0)
    reading.wait_for(as_shown(numbered(0, 3)))
    reading.close()
    wait_until(lambda: scheduler.reading == 0, "no stream", PATIENCE)
    scheduler.write(0, *numbered(3, 6))
    one.read(0).wait_for(as_shown(numbered(0, 6)))
    assert scheduler.cursors[0] is None
    assert scheduler.cursors[-1] is not None


def test_two_programs_read_one_job(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    first, second = instance(scheduler), instance(scheduler)
    readings = [first.read(), second.read()]
    for reading in readings:
        reading.wait_for([b"a"])
    assert len({folder.parent.parent for folder in first.spool_folders()}) == 2
    readings[0].close()
    first.close()
    scheduler.write(0, "b\n")
    readings[1].wait_for([b"a", b"b"])
    # What is closed leaves nothing behind.
    assert len({folder.parent.parent for folder in second.spool_folders()}) == 1


def test_files_are_for_nobody_else(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    handle = "fake://torchx/../../../tmp/evil app"
    one = instance(scheduler)
    one.read(handle=handle).wait_for([b"a"])
    root = cache_folder() / "spool"
    (folder,) = one.spool_folders()
    assert folder.is_relative_to(root)
    for path in (root, folder.parent.parent, folder.parent, folder):
        assert path.stat().st_mode & 0o777 == 0o700
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


# Caps


def test_over_the_cap_of_a_job_the_oldest_lines_go(instance: Callable[..., Instance], small_segments: None) -> None:
    scheduler = RecordScheduler()
    one = instance(scheduler, job=40_000)
    reading = one.read()
    total = 12_000
    for start in range(0, total, 400):
        scheduler.write(0, *numbered(start, start + 400))
        wait_until(lambda: reading.lines()[-1:] == [b"line %d" % (start + 399)], "the last line", PATIENCE)  # noqa: B023
    found = reading.lines()
    assert found == as_shown(numbered(total - len(found), total))
    assert 400 < len(found) < 6000
    bounds = reading.log.bounds()
    assert bounds.complete
    assert bounds.gone + bounds.end - bounds.first == total + 1
    assert len([text for text in reading.notices() if "oldest lines go" in text]) <= 1
    size = sum(file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir())
    assert size < 50_000
    # Who comes later is told so.
    again = one.read()
    again.wait_for(found)
    notice = again.wait_for_notice("older lines are gone", "spool_megabytes_per_job")
    assert f"{total - len(found):,}" in notice
    assert again.log.lines(again.log.bounds().first, 1)[0].stream == "n"


def test_the_notice_comes_when_the_first_lines_go(instance: Callable[..., Instance], small_segments: None) -> None:
    scheduler = RecordScheduler()
    reading = instance(scheduler, job=250_000).read()
    scheduler.write(0, *numbered(0, 5000))
    wait_until(lambda: reading.lines()[-1:] == [b"line 4999"], "the first lines", PATIENCE)
    for start in range(5000, 12_000, 100):
        scheduler.write(0, *numbered(start, start + 100))
        if reading.log.bounds().gone:
            break
        time.sleep(0.01)
    reading.wait_for_notice("the oldest lines go from here on", "spool_megabytes_per_job")


def test_a_merged_log_begins_where_all_its_replicas_are_whole(
    instance: Callable[..., Instance], small_segments: None
) -> None:
    scheduler = RecordScheduler(replicas=3)
    one = instance(scheduler, job=60_000)
    merged = one.read()
    for start in range(0, 9000, 300):
        scheduler.write(0, *numbered(start, start + 300, "flood"))
        scheduler.write(1, f"quiet {start}\n")
        last = {b"flood %d" % (start + 299), b"quiet %d" % start}
        wait_until(lambda: last <= set(merged.lines()[-302:]), "the last lines", PATIENCE)  # noqa: B023
    # The flooding replica's lines went, not those of the quiet one.
    one.read(1).wait_for([b"quiet %d" % start for start in range(0, 9000, 300)])
    for reading in (merged, one.read()):
        wait_until(lambda: reading.log.bounds().complete, "all lines", PATIENCE)  # noqa: B023
        found = reading.lines()
        flood = [int(line.split()[1]) for line in found if line.startswith(b"flood")]
        assert flood == list(range(flood[0], 9000))
        assert flood[0] > 0
    # By their times, the quiet one's lines are older than what went.
    assert not any(line.startswith(b"quiet") for line in found)
    assert "older lines are gone" in reading.notices()[0]


def test_over_the_cap_in_all_the_job_read_longest_ago_gives(
    instance: Callable[..., Instance], small_segments: None
) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 2500))
    one = instance(scheduler, job=200_000, total=250_000)
    for name in ("first", "second"):
        reading = one.read(handle=f"fake://torchx/{name}")
        wait_until(lambda: len(reading.lines()) == 2500, "all lines", PATIENCE)  # noqa: B023
        reading.close()
    third = one.read(handle="fake://torchx/third")
    wait_until(lambda: len(third.lines()) == 2500, "all lines", PATIENCE)
    assert third.log.bounds().gone == 0

    def size(name: str) -> int:
        return sum(
            file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir() if name in str(folder)
        )

    assert size("first") < size("second") <= size("third")
    assert size("third") >= 2500 * 9
    assert size("") <= 255_000


# Disks and folders


def test_a_full_disk_is_waited_for(instance: Callable[..., Instance], quick_retries: None, tmp_path: Path) -> None:
    """On a real small file system."""
    cache = cache_folder()
    cache.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(cache)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    one = None
    try:
        ballast = cache / "ballast"
        ballast.write_bytes(b"x" * 150_000)
        scheduler = RecordScheduler()
        one = instance(scheduler)
        reading = one.read()
        lines = numbered(0, 20_000)
        scheduler.write(0, *lines)
        notice = reading.wait_for_notice("is full", "reading waits")
        assert str(cache) in notice
        assert "free some space there" in notice
        late = one.read()
        late.wait_for_notice("is full", "reading waits")
        found = reading.lines()
        assert 0 < len(found) < len(lines)
        assert found == as_shown(lines[: len(found)])
        ballast.unlink()
        reading.wait_for_notice("reading goes on")
        wait_until(lambda: len(reading.lines()) > len(found) + 1000, "more lines", PATIENCE)
        found = reading.lines()
        assert found == as_shown(lines[: len(found)])
        assert reading.follower.failure == ""
    finally:
        if one is not None:
            one.close()
        subprocess.run(["umount", "-l", str(cache)], check=True)


def test_a_full_disk_takes_the_oldest_lines(
    instance: Callable[..., Instance], quick_retries: None, small_segments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 30_000
    written = os.pwrite

    def pwrite(descriptor: int, data: bytes, at: int) -> int:
        used = sum(file.stat().st_size for folder in one.spool_folders() for file in folder.iterdir())
        if used + len(data) > room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    scheduler = RecordScheduler()
    one = instance(scheduler)
    reading = one.read()
    for start in range(0, 6000, 500):
        scheduler.write(0, *numbered(start, start + 500))
        wait_until(lambda: reading.lines()[-1:] == [b"line %d" % (start + 499)], "the last line", PATIENCE)  # noqa: B023
    found = reading.lines()
    assert found == as_shown(numbered(6000 - len(found), 6000))
    assert 0 < reading.log.bounds().gone < 6000


def test_a_spool_folder_that_is_removed_is_made_again(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler(replicas=2)
    scheduler.write(0, *numbered(0, 100))
    one = instance(scheduler)
    reading = one.read(0)
    reading.wait_for(as_shown(numbered(0, 100)))
    shutil.rmtree(cache_folder())
    scheduler.write(0, *numbered(100, 200))
    reading.wait_for(as_shown(numbered(0, 200)))
    reading.wait_for_notice("trainer/0", "was removed", "no line is lost")
    one.read(0).wait_for(as_shown(numbered(0, 200)))


def test_a_removed_folder_costs_no_more_than_what_was_finished(
    instance: Callable[..., Instance], small_segments: None
) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, *numbered(0, 2000))
    one = instance(scheduler)
    reading = one.read()
    wait_until(lambda: len(reading.lines()) == 2000, "all lines", PATIENCE)
    shutil.rmtree(cache_folder())
    scheduler.write(0, *numbered(2000, 2100))
    wait_until(lambda: reading.lines()[-1:] == [b"line 2099"], "the last line", PATIENCE)
    reading.wait_for_notice("trainer/0", "was removed", "oldest lines are gone")
    for view in (reading, one.read()):
        wait_until(lambda: view.lines()[-1:] == [b"line 2099"], "the last line", PATIENCE)  # noqa: B023
        found = view.lines()
        assert found == as_shown(numbered(2100 - len(found), 2100))
        assert len(found) > 100


def test_it_ends_by_itself_when_closed_while_the_disk_is_full(
    instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    one = instance(scheduler)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        reading = one.read()
        reading.wait_for_notice("cannot be written", "Read-only file system", "mend that")
        reading.close()
        wait_until(lambda: scheduler.reading == 0, "no stream", PATIENCE)
    # The cursor did not move.
    one.read().wait_for([b"a"])


def test_a_slow_answer_is_not_taken_for_the_end(
    instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_ENDED_WITHIN", 0.0)
    monkeypatch.setattr(follow, "_SETTLE", 0.0)
    go, asked = threading.Event(), threading.Event()

    class Slow(RecordScheduler):
        def log_stream(self, *arguments, **named):
            asked.set()
            assert go.wait(PATIENCE)
            return super().log_stream(*arguments, **named)

    scheduler = Slow()
    scheduler.write(0, "a\n")
    scheduler.end()
    reading = instance(scheduler).read()
    assert asked.wait(PATIENCE)
    wait_until(lambda: reading.follower.opened, "the empty log", PATIENCE)
    assert not reading.follower.join(0.3)
    go.set()
    wait_until(lambda: reading.follower.ended, "the end", PATIENCE)
    assert reading.lines() == [b"a"]


def test_a_stream_that_connects_after_it_was_closed_is_closed(
    instance: Callable[..., Instance], monkeypatch: pytest.MonkeyPatch
) -> None:
    go, asked = threading.Event(), threading.Event()

    class Slow(RecordScheduler):
        def log_stream(self, *arguments, **named):
            asked.set()
            assert go.wait(PATIENCE)
            return super().log_stream(*arguments, **named)

    scheduler = Slow()
    one = instance(scheduler)
    reading = one.read()
    assert asked.wait(PATIENCE)
    reading.close()
    wait_until(lambda: not any(spooled.feed for spooled in spools_of(one)), "the feed's end", PATIENCE)
    go.set()
    wait_until(lambda: scheduler.opened == 1 and scheduler.reading == 0, "the stream's end", PATIENCE)
    scheduler.write(0, "a\n")
    one.read().wait_for([b"a"])


def test_a_log_that_could_not_be_read_is_tried_again(instance: Callable[..., Instance]) -> None:
    scheduler = RecordScheduler()
    scheduler.write(0, "a\n")
    scheduler.failure = ValueError("no replica 0 of trainer; there are none yet")
    one = instance(scheduler)
    reading = one.read()
    reading.wait_for_notice("none yet")
    reading.close()
    wait_until(lambda: not any(spooled.feed for spooled in spools_of(one)), "the feed's end", PATIENCE)
    scheduler.failure = None
    one.read().wait_for([b"a"])


def spools_of(one: Instance) -> list:
    return [spooled for job in one.runner._log_spools()._jobs.values() for spooled in job.spools.values()]


def test_what_dead_programs_left_is_removed(instance: Callable[..., Instance]) -> None:
    left = cache_folder() / "spool" / f"{os.uname().nodename.replace('.', '-')}.999999999.1.0"
    left.mkdir(parents=True)
    instance(RecordScheduler()).runner.remove_stale_spools()
    wait_until(lambda: not left.exists(), "its removal", PATIENCE)


def test_only_the_last_writer_adds_to_a_spool(tmp_path: Path) -> None:
    kept = spool.ReplicaSpool(tmp_path / "spool", "trainer/0", 1_000_000)
    first, second = object(), object()
    kept.begin(first)
    kept.take(Record(b"a\n", None, "c"), LineCursor(1), first)
    kept.begin(second)
    # The first one's stream was closed while it gave this.
    kept.take(Record(b"b\n", None, "c"), LineCursor(2), first)
    kept.leave(first)
    assert kept.cursor == LineCursor(1)
    kept.take(Record(b"b\n", None, "c"), LineCursor(2), second)
    (segment,) = kept.segments()
    assert segment.data.read(0, 100) == b"a\nb\n"
    kept.close()
