"""Logs: lines in parts, both streams, floods, and the rest of a killed supervisor's."""

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from backend.local.support import python_app
from support.waiting import wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.local import supervisor
from torchx_tui.backends.local.supervisor import CombinedLog
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError


def test_ten_megabytes_without_a_line_end(local):
    program = "import sys; sys.stdout.write('x' * 10_000_000); sys.stderr.write('short\\n')"
    app_id = local.finish(python_app(program)).app_id
    assert [len(line) for line in local.lines(app_id, streams="stdout")] == [10_000_000]
    assert sorted(len(line) for line in local.lines(app_id)) == [6, 10_000_000]
    assert (local.replica(app_id) / "combined.log").stat().st_size == 10_000_006


def test_line_in_parts_is_one_line(local):
    program = (
        "import sys, time\n"
        "sys.stdout.write('begun '); time.sleep(1.3)\n"
        "print('between', file=sys.stderr); time.sleep(0.1); print('ended')"
    )
    app_id = local.start(python_app(program))
    # The file itself has the bytes as they came.
    combined = local.replica(app_id) / "combined.log"
    wait_until(lambda: combined.exists() and combined.read_text() == "begun ", "the first part")
    assert local.lines(app_id, should_tail=True) == ["between\n", "begun ended\n"]
    local.ended(app_id)
    assert combined.read_text() == "begun between\nended\n"


def test_index_has_every_byte(local):
    app_id = local.start("for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done")
    began = time.time()
    local.ended(app_id)
    folder = local.replica(app_id)
    data = (folder / "combined.log").read_bytes()
    records = [line.split() for line in (folder / "combined.index").read_text().splitlines()]
    starts = [int(record[0]) for record in records]
    times = [float(record[1]) for record in records]
    assert (starts[0], starts, times) == (0, sorted(set(starts)), sorted(times))
    assert began - 5 < times[0] <= times[-1] < time.time() + 1
    streams = {"o": b"", "e": b""}
    for start, end, record in zip(starts, [*starts[1:], len(data)], records, strict=True):
        streams[record[2]] += data[start:end]
    assert streams == {"o": b"o1\no2\no3\n", "e": b"e1\ne2\ne3\n"}
    assert data == b"o1\ne1\no2\ne2\no3\ne3\n"


def test_flood_is_complete_and_in_order(local):
    app_id = local.start("seq 1 200000; seq 1 1000 >&2")
    assert local.lines(app_id, should_tail=True, streams="stdout") == [f"{n}\n" for n in range(1, 200001)]
    local.ended(app_id)
    assert len(local.lines(app_id)) == 201000


def test_flood_does_not_delay_the_end(local):
    """What is not in combined.log yet is read from the stream's own file, and comes there afterwards."""
    app_id = local.start_running("yes 'a line of some length, again and again' | head -c 400000000")
    pid = local.state(app_id)["replicas"][0]["pid"]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the replica's end")
    local.ended(app_id)
    folder = local.replica(app_id)
    assert (folder / "stdout.log").stat().st_size == 400_000_000
    wait_until(lambda: (folder / "combined.log").stat().st_size == 400_000_000, "the rest of combined.log")


def test_bytes_that_are_no_text(local):
    app_id = local.finish(r"printf '\377\376 ok\n\000nul\n'").app_id
    assert local.lines(app_id) == ["\ufffd\ufffd ok\n", "\0nul\n"]


def test_lines_after_the_supervisors_death(local):
    app_id = local.start_running("echo one; sleep 0.5; echo two; echo three >&2; sleep 0.3; echo four")
    wait_until(lambda: local.lines(app_id) == ["one\n"], "the first line")
    lines = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "one\n"
    local.kill_supervisor(app_id)
    assert sorted(lines) == ["four\n", "three\n", "two\n"]
    assert sorted(local.lines(app_id)) == ["four\n", "one\n", "three\n", "two\n"]


def test_log_that_is_removed_while_it_is_read(local):
    app_id = local.start("echo x; sleep 3600")
    lines = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "x\n"
    (local.replica(app_id) / "combined.log").unlink()
    with pytest.raises(SchedulerError, match="removed"):
        list(lines)


def test_the_log_of_a_deleted_job_ends(local):
    app_id = local.start("echo x; sleep 3600")
    lines = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "x\n"
    local.scheduler.delete(app_id)
    with suppress(SchedulerError):
        assert list(lines) == []
    with pytest.raises(JobNotFoundError):
        local.scheduler.log_iter(app_id, "r")


@pytest.mark.parametrize("kept", ["combined", "stdout"])
def test_one_file_of_a_log_is_enough(local, kept):
    app_id = local.finish("echo x").app_id
    folder = local.replica(app_id)
    for path in list(folder.iterdir()):
        if not path.name.startswith(kept):
            path.unlink()
    assert local.lines(app_id) == ["x\n"]
    (folder / f"{kept}.log").unlink()
    with pytest.raises(SchedulerError, match=r"there is no log .*: it was removed or never written"):
        local.lines(app_id)


def test_line_is_delivered_soon(local):
    app_id = local.start(python_app("import time\nfor n in range(30): print(time.time()); time.sleep(0.03)"))
    delays = sorted(time.time() - float(line) for line in local.scheduler.log_iter(app_id, "r", should_tail=True))
    # 20 ms is usual; far more is a fault and not a busy machine.
    assert delays[len(delays) // 2] < 5


def test_log_files_of_every_stream(local):
    app_id = local.finish("exit 0", replicas=2).app_id
    files = {stream: local.replica(app_id, 1) / f"{stream.value}.log" for stream in Stream}
    assert local.scheduler.log_files(app_id, "r", 1) == files


class Streams:
    """Two files of output and the log that combines them, at a time that stands still."""

    def __init__(self, folder, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)
        self.paths = {name: folder / f"{name}.log" for name in ("stdout", "stderr", "combined")}
        self.index = folder / "combined.index"
        self.write("stdout", b"")
        self.write("stderr", b"")

    def open(self):
        return CombinedLog({name: str(path) for name, path in self.paths.items()}, keep_open=True)

    def write(self, stream, data):
        with self.paths[stream].open("ab") as file:
            file.write(data)

    @property
    def combined(self):
        return self.paths["combined"].read_bytes()


@pytest.fixture
def streams(tmp_path, monkeypatch):
    return Streams(tmp_path, monkeypatch)


NEVER = float("inf")


def test_combined_log_copies_whole_lines(streams):
    log = streams.open()
    assert log.copy() == NEVER
    streams.write("stdout", b"a\nb")
    streams.write("stderr", b"E\n")
    assert 0 < log.copy() <= 1
    assert streams.combined == b"a\nE\n"
    assert log.copy(last=True) == NEVER
    assert streams.combined == b"a\nE\nb"
    os.truncate(streams.paths["stdout"], 0)
    log.copy()
    streams.write("stdout", b"new\n")
    log.copy()
    assert streams.combined == b"a\nE\nbnew\n"


def test_combined_log_waits_for_the_end_of_a_line(streams):
    streams.write("stdout", b"part")
    log = streams.open()
    assert log.copy() == 0.25
    streams.now += 0.125
    assert (log.copy(), streams.combined) == (0.125, b"")
    streams.now += 0.25
    assert (log.copy(), streams.combined) == (NEVER, b"part")
    # There is more of a flood to copy at once.
    streams.write("stderr", b"x" * 99 + b"\n" + b"y" * supervisor.CHUNK)
    assert (log.copy(), streams.combined) == (0.0, b"part" + b"x" * 99 + b"\n")


def test_truncated_combined_log_keeps_true_times(streams):
    streams.write("stdout", b"the first line\n")
    log = streams.open()
    log.copy()
    os.truncate(streams.paths["combined"], 0)
    streams.now = 2000.0
    streams.write("stdout", b"second\n")
    log.copy()
    assert (streams.combined, streams.index.read_bytes()) == (b"second\n", b"0 2000.000 o\n")


def test_combined_log_has_earlier_output(streams):
    streams.write("stdout", b"out\n")
    streams.write("stderr", b"err\n")
    assert streams.open().copy() == NEVER
    assert (streams.combined, streams.index.read_bytes()) == (b"out\nerr\n", b"0 1000.000 o\n4 1000.000 e\n")


def test_log_says_that_the_disk_was_full(streams, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    log = streams.open()
    streams.write("stdout", b"a\n")
    with monkeypatch.context() as full:
        full.setattr(os, "write", fail)
        log.copy()
        streams.now += 60
        log.copy()
    assert streams.combined == b""
    begin, end = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (1000, 1060))
    note = f"torchx-tui: the disk was full from {begin} to {end}: lines of this log may be missing\n".encode()
    for _ in range(2):
        log.copy()
        assert streams.combined == b"a\n" + note
    assert streams.index.read_bytes().endswith(b"\n2 1060.000 e\n")
