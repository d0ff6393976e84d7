"""Reading logs: lines that come in parts, both streams, floods, and what a killed supervisor could not bring over."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from backend.local.support import Local, app
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.shared.stream_lines import LineAssembler
from torchx_tui.logs.source.stream import Record
from torchx_tui.specs import AppDef, JobNotFoundError, Role, SchedulerError


def python(local: Local, program: str) -> str:
    return local.scheduler.submit(
        AppDef("job", [Role("r", "", entrypoint=sys.executable, args=["-u", "-c", program])]), {}
    )


def test_ten_megabytes_without_a_line_end(local: Local) -> None:
    app_id = python(local, "import sys; sys.stdout.write('x' * 10_000_000); sys.stderr.write('short\\n')")
    local.ended(app_id)
    assert [len(line) for line in local.lines(app_id, streams="stdout")] == [10_000_000]
    assert sorted(len(line) for line in local.lines(app_id)) == [6, 10_000_000]
    combined = local.run(app_id).folder / "r" / "0" / "combined.log"
    assert combined.stat().st_size == 10_000_006


def test_a_line_in_parts_is_one_line(local: Local) -> None:
    program = (
        "import sys, time\n"
        "sys.stdout.write('begun '); time.sleep(1.3)\n"
        "print('between', file=sys.stderr); time.sleep(0.1); print('ended')"
    )
    app_id = python(local, program)
    lines = list(local.scheduler.log_iter(app_id, "r", should_tail=True))
    assert lines == ["between\n", "begun ended\n"]
    # The file itself has the bytes as they came.
    local.ended(app_id)
    combined = local.run(app_id).folder / "r" / "0" / "combined.log"
    assert combined.read_text() == "begun between\nended\n"


def test_a_line_without_an_end_reaches_the_combined_file(local: Local) -> None:
    app_id = local.start("printf waiting; sleep 3600")
    local.running(app_id)
    combined = local.run(app_id).folder / "r" / "0" / "combined.log"
    wait_until(lambda: combined.read_text() == "waiting", "the line")


def test_the_index_tells_every_byte(local: Local) -> None:
    app_id = local.start("for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done")
    began = time.time()
    run = local.ended(app_id)
    folder = run.folder / "r" / "0"
    data = (folder / "combined.log").read_bytes()
    records = [line.split() for line in (folder / "combined.index").read_text().splitlines()]
    starts = [int(record[0]) for record in records]
    times = [float(record[1]) for record in records]
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert times == sorted(times)
    assert all(began - 5 < at < time.time() + 1 for at in times)
    for name, letter in (("stdout.log", "o"), ("stderr.log", "e")):
        parts = [
            data[start:end]
            for start, end, record in zip(starts, [*starts[1:], len(data)], records, strict=True)
            if record[2] == letter
        ]
        assert b"".join(parts) == (folder / name).read_bytes()
    assert data == b"o1\ne1\no2\ne2\no3\ne3\n"


def test_a_flood_is_complete_and_in_order(local: Local) -> None:
    app_id = local.start("seq 1 200000; seq 1 1000 >&2")
    lines = list(local.scheduler.log_iter(app_id, "r", should_tail=True, streams=Stream.STDOUT))
    assert lines == [f"{n}\n" for n in range(1, 200001)]
    local.ended(app_id)
    assert len(local.lines(app_id)) == 201000


def test_bytes_that_are_no_text(local: Local) -> None:
    app_id = local.start(r"printf '\377\376 ok\n\000nul\n'")
    local.ended(app_id)
    assert local.lines(app_id) == ["\ufffd\ufffd ok\n", "\0nul\n"]


def test_what_a_killed_supervisor_did_not_bring_over(local: Local) -> None:
    app_id = local.start("echo one; sleep 0.5; echo two; echo three >&2; sleep 0.3; echo four")
    state = local.running(app_id)
    wait_until(lambda: local.lines(app_id) == ["one\n"], "the first line")
    lines: Any = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "one\n"
    os.kill(state["pid"], signal.SIGKILL)
    assert sorted(lines) == ["four\n", "three\n", "two\n"]
    assert sorted(local.lines(app_id)) == ["four\n", "one\n", "three\n", "two\n"]


def test_tail_of_an_app_that_waits(make_local) -> None:
    local = make_local(max_running=1)
    first = local.start("sleep 1")
    second = local.start("echo mine")
    assert local.lines(second) == []
    assert local.lines(second, should_tail=True) == ["mine\n"]
    local.ended(first)


def test_a_log_that_goes_away_while_it_is_read(local: Local) -> None:
    app_id = local.start("echo x; sleep 3600")
    lines: Any = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "x\n"
    (local.run(app_id).folder / "r" / "0" / "combined.log").unlink()
    with pytest.raises(SchedulerError, match="removed"):
        next(lines)


@pytest.mark.parametrize("kept", ["combined", "stdout"])
def test_one_file_of_a_log_is_enough(local: Local, kept: str) -> None:
    app_id = local.start("echo x")
    folder = local.ended(app_id).folder / "r" / "0"
    for path in list(folder.iterdir()):
        if not path.name.startswith(kept):
            path.unlink()
    assert local.lines(app_id) == ["x\n"]
    (folder / f"{kept}.log").unlink()
    with pytest.raises(SchedulerError, match="the log was removed"):
        local.lines(app_id)


def test_a_deleted_app_ends_its_readers(local: Local) -> None:
    app_id = local.start("echo x; sleep 3600")
    lines: Any = local.scheduler.log_iter(app_id, "r", should_tail=True)
    assert next(lines) == "x\n"
    local.scheduler.delete(app_id)
    with pytest.raises(SchedulerError):
        list(lines)
    with pytest.raises(JobNotFoundError):
        local.scheduler.log_iter(app_id, "r")


def test_a_line_is_delivered_soon(local: Local) -> None:
    program = "import time\nfor n in range(30): print(time.time()); time.sleep(0.03)"
    app_id = python(local, program)
    delays = sorted(time.time() - float(line) for line in local.scheduler.log_iter(app_id, "r", should_tail=True))
    # 20 ms is usual; far more than that tells a fault from a busy machine.
    assert delays[len(delays) // 2] < 5


def test_close_is_prompt(local: Local) -> None:
    app_id = local.start("sleep 600")
    lines: Any = local.scheduler.log_iter(app_id, "r", should_tail=True)
    ended = threading.Event()

    def read() -> None:
        list(lines)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.1)
    began = time.monotonic()
    lines.close()
    assert ended.wait(PATIENCE)
    assert time.monotonic() - began < PATIENCE


def test_a_malformed_expression(local: Local) -> None:
    app_id = local.start("exit 0")
    local.ended(app_id)
    with pytest.raises(ValueError, match=r"not a regular expression: \("):
        local.scheduler.log_iter(app_id, "r", regex="(")


def test_without_inotify_logs_are_polled(local: Local) -> None:
    """The supervisor falls back where no watches are left."""
    from torchx_tui.backends.local import supervisor

    watch = supervisor.Watch.__new__(supervisor.Watch)
    watch.file, watch._add, watch._numbers = -1, None, {}
    watch.add("/nowhere", 1)
    assert watch.written() is None


def test_combined_log_by_hand(tmp_path: Path) -> None:
    from torchx_tui.backends.local.supervisor import CombinedLog

    files = {name: str(tmp_path / f"{name}.log") for name in ("stdout", "stderr", "combined")}
    for name in ("stdout", "stderr"):
        Path(files[name]).write_bytes(b"")
    log = CombinedLog(files, keep_open=True)
    assert log.copy() == float("inf")
    with open(files["stdout"], "ab") as out, open(files["stderr"], "ab") as err:
        out.write(b"a\nb")
        out.flush()
        err.write(b"E\n")
        err.flush()
        assert 0 < log.copy() <= 1
        assert Path(files["combined"]).read_bytes() == b"a\nE\n"
        assert log.copy(last=True) == float("inf")
        assert Path(files["combined"]).read_bytes() == b"a\nE\nb"
        out.truncate(0)
        log.copy()
        out.write(b"new\n")
        out.flush()
        log.copy()
    assert Path(files["combined"]).read_bytes() == b"a\nE\nbnew\n"


def test_a_line_without_an_end_waits_for_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchx_tui.backends.local.supervisor import _CHUNK, CombinedLog

    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    files = {name: str(tmp_path / f"{name}.log") for name in ("stdout", "stderr", "combined")}
    Path(files["stdout"]).write_bytes(b"part")
    Path(files["stderr"]).write_bytes(b"")
    log = CombinedLog(files, keep_open=True)
    assert log.copy() == 0.25
    now += 0.125
    assert log.copy() == 0.125
    assert Path(files["combined"]).read_bytes() == b""
    now += 0.25
    assert log.copy() == float("inf")
    assert Path(files["combined"]).read_bytes() == b"part"
    # There is more of a flood to copy at once.
    Path(files["stderr"]).write_bytes(b"x" * 99 + b"\n" + b"y" * _CHUNK)
    assert log.copy() == 0.0
    assert Path(files["combined"]).read_bytes() == b"part" + b"x" * 99 + b"\n"


def test_truncated_combined_log_keeps_true_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchx_tui.backends.local.supervisor import CombinedLog

    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    files = {name: str(tmp_path / f"{name}.log") for name in ("stdout", "stderr", "combined")}
    out = Path(files["stdout"])
    out.write_bytes(b"the first line\n")
    Path(files["stderr"]).write_bytes(b"")
    log = CombinedLog(files, keep_open=True)
    log.copy()
    os.truncate(files["combined"], 0)
    now = 2000.0
    out.write_bytes(out.read_bytes() + b"second\n")
    log.copy()
    assert Path(files["combined"]).read_bytes() == b"second\n"
    assert (tmp_path / "combined.index").read_bytes() == b"0 2000.000 o\n"


def test_what_came_before_there_was_a_combined_log_is_in_it(tmp_path: Path) -> None:
    from torchx_tui.backends.local.supervisor import CombinedLog

    files = {name: str(tmp_path / f"{name}.log") for name in ("stdout", "stderr", "combined")}
    Path(files["stdout"]).write_bytes(b"out\n")
    Path(files["stderr"]).write_bytes(b"err\n")
    assert CombinedLog(files, keep_open=True).copy() == float("inf")
    assert Path(files["combined"]).read_bytes() == b"out\nerr\n"
    records = [line.split() for line in (tmp_path / "combined.index").read_text().splitlines()]
    assert [(start, letter) for start, _, letter in records] == [("0", "o"), ("4", "e")]


def test_lines_of_both_streams_are_put_together() -> None:
    lines = LineAssembler()
    assert lines.add(Record(b"a", 1.0, "o")) == []
    assert lines.add(Record(b"E\nF", 2.0, "e")) == [(2.0, b"E\n")]
    assert lines.add(Record(b"b\n\nc", 3.0, "o")) == [(1.0, b"ab\n"), (3.0, b"\n")]
    assert lines.rest() == [(3.0, b"c"), (2.0, b"F")]
    assert lines.rest() == []


def test_log_path_of_every_stream(local: Local) -> None:
    app_id = local.scheduler.submit(app("exit 0", replicas=2), {})
    local.ended(app_id)
    for stream in Stream:
        path = local.scheduler.log_path(app_id, "r", 1, stream)
        assert path == local.run(app_id).folder / "r" / "1" / f"{stream.value}.log"
    assert local.scheduler.log_path("no-such-app", "r", 0, Stream.STDOUT) is None


def test_a_flood_does_not_delay_the_end(local: Local) -> None:
    """What is not in combined.log yet is read from the stream's own file, and comes there afterwards."""
    app_id = local.start("yes 'a line of some length, again and again' | head -c 400000000")
    state = local.running(app_id)
    pid = state["replicas"][0]["pid"]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the replica's end")
    began = time.monotonic()
    run = local.ended(app_id)
    assert time.monotonic() - began < PATIENCE
    folder = run.folder / "r" / "0"
    assert (folder / "stdout.log").stat().st_size == 400_000_000
    wait_until(lambda: (folder / "combined.log").stat().st_size == 400_000_000, "the rest of combined.log")
