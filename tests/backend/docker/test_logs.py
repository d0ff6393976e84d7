"""Logs of a real engine's containers."""

from __future__ import annotations

import itertools
import threading
import time
from datetime import datetime, timezone
from typing import Any

import pytest
from support.docker_containers import Replicas, replicas
from support.following import Follower
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.logs.source.stream import Cursor, LogStream, TimeCursor
from torchx_tui.specs.errors import JobNotFoundError, LogUnreadableError, SchedulerError

BOTH = r"echo out; echo err >&2; sleep 0.01; printf 'no end'"


@pytest.fixture
def app(docker_engine):
    with replicas() as made:
        yield made


def lines(app: Replicas, **options: object) -> list[str]:
    return list(DockerScheduler("test", app.engine).log_iter(app.app_id, "worker", **options))  # type: ignore[arg-type]


def open_stream(app: Replicas, cursor: Cursor | None = None) -> LogStream:
    return DockerScheduler("test", app.engine).log_stream(app.app_id, "worker", 0, Stream.COMBINED, cursor)


def follow(app: Replicas) -> Follower:
    return Follower(lambda cursor: open_stream(app, cursor))


@pytest.mark.parametrize("should_tail", [False, True])
@pytest.mark.parametrize(
    ("stream", "expected"),
    [(None, ["err\n", "no end", "out\n"]), (Stream.STDOUT, ["no end", "out\n"]), (Stream.STDERR, ["err\n"])],
)
def test_streams(app, stream, expected, should_tail):
    app.start(BOTH).wait()
    assert sorted(lines(app, streams=stream, should_tail=should_tail)) == expected


def test_records_have_letters_and_the_engines_times(app):
    before = time.time()
    app.start("echo first; sleep 0.3; echo second >&2; sleep 0.3; echo third").wait()
    records = list(open_stream(app))
    assert [(record.data, record.stream) for record in records] == [
        (b"first\n", "o"), (b"second\n", "e"), (b"third\n", "o"),
    ]  # fmt: skip
    times = [record.time or 0.0 for record in records]
    assert before - 1 < times[0]
    assert all(0.2 < later - earlier < 30 for earlier, later in itertools.pairwise(times))


def test_a_tail_follows_until_the_end(app):
    app.start("for i in 1 2 3; do echo $i; sleep 0.2; done")
    assert lines(app, should_tail=True) == ["1\n", "2\n", "3\n"]


def test_a_tail_ends_with_the_app_not_with_its_replica(app):
    app.start("echo once", k=0)
    other = app.start("sleep 3600", k=1)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.extend(lines(app, should_tail=True)), daemon=True)
    reader.start()
    reader.join(1.0)
    assert reader.is_alive()
    other.kill()
    reader.join(PATIENCE)
    assert got == ["once\n"]


def test_close_ends_a_blocked_read_at_once(app):
    app.start("echo once; sleep 600")
    reading: Any = DockerScheduler("test", app.engine).log_iter(app.app_id, "worker", should_tail=True)
    follower = follow(app)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.extend(reading), daemon=True)
    reader.start()
    wait_until(lambda: got and follower.records, "the first line")
    began = time.monotonic()
    reading.close()
    follower.close()
    reader.join(PATIENCE)
    follower.join()
    assert time.monotonic() - began < PATIENCE
    assert got == ["once\n"]
    reading.close()
    follower.close()


def test_times_and_patterns_choose_lines(app):
    container = app.start("trap 'echo late; exit' USR1; echo early; while :; do sleep 0.1; done")
    wait_until(lambda: lines(app), "the first line")
    between = datetime.now(timezone.utc)
    assert lines(app, should_tail=True, until=between) == ["early\n"]
    container.kill("USR1")
    assert lines(app, should_tail=True, since=between) == ["late\n"]
    assert lines(app, since=between.astimezone().replace(tzinfo=None)) == ["late\n"]
    assert lines(app, until=between) == ["early\n"]
    assert lines(app, regex="^l") == ["late\n"]


def test_a_tail_that_is_wanted_up_to_a_time_ends_then(app):
    app.start("echo now; sleep 3600")
    wait_until(lambda: lines(app), "the first line")
    until = datetime.fromtimestamp(time.time() + 1, timezone.utc)
    assert lines(app, should_tail=True, until=until) == ["now\n"]


@pytest.mark.parametrize(
    ("driver", "data"),
    # The default driver keeps JSON, and with it text: what is none is replaced before anybody can read it.
    [("local", b"a\xffb\r\n\x00\xc3"), ("json-file", "a\ufffdb\r\n\x00\ufffd".encode())],
)
def test_bytes_that_are_no_text_survive(app, driver, data):
    app.start(r"printf 'a\377b\r\n\000\303'", log_config={"type": driver}).wait()
    assert b"".join(record.data for record in open_stream(app)) == data
    assert lines(app) == ["a\ufffdb\r\n", "\x00\ufffd"]


@pytest.mark.parametrize("tty", [False, True])
def test_long_lines_are_one(app, tty):
    script = "import sys\nfor size in (16383, 16384, 16385, 50000): print('\u00e9' * (size // 2) + 'x' * (size % 2))"
    app.python(script, tty=tty, environment={"PYTHONIOENCODING": "utf-8"}).wait()
    end = "\r\n" if tty else "\n"
    expected = ["\u00e9" * (size // 2) + "x" * (size % 2) + end for size in (16383, 16384, 16385, 50000)]
    assert lines(app) == expected
    data = b"".join(record.data for record in open_stream(app))
    assert data.decode() == "".join(expected)


def test_a_restarted_container_goes_on_and_says_so(app):
    app.start("echo run; sleep 0.3; exit 3", restart_policy={"Name": "on-failure", "MaximumRetryCount": 2})
    live = follow(app)
    live.join()
    assert live.of("o") == b"run\n" * 3
    assert live.of("c") == b"".join(
        b"-- worker/0 was restarted (restart %d): its log continues --\n" % number for number in (1, 2)
    )
    # Whoever comes later is told of the last one, at its place.
    later = [(record.stream, record.data) for record in open_stream(app)]
    assert later[-2:] == [("c", b"-- worker/0 was restarted (restart 2): its log continues --\n"), ("o", b"run\n")]
    assert lines(app, should_tail=True) == ["run\n"] * 3


def test_a_log_is_taken_up_where_it_was_left(app):
    app.python("import sys\nfor i in range(3000): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)").wait()
    whole = list(open_stream(app))
    data, cursor, record = b"", None, whole[0]
    while record is not None:
        reading = open_stream(app, cursor)
        for _ in range(max(1, len(whole) // 20)):
            record = next(reading, None)
            data += record.data if record else b""
        cursor = reading.cursor
        assert isinstance(cursor, TimeCursor)
        reading.close()
    assert data == b"".join(one.data for one in whole)
    assert sorted(map(int, data.split())) == list(range(3000))


def test_a_container_that_was_removed(app):
    container = app.start("echo gone; sleep 3600")
    reading = open_stream(app)
    assert next(reading).data == b"gone\n"
    container.remove(force=True)
    with pytest.raises(SchedulerError, match=r"worker/0 of .* was removed"):
        next(reading)
    with pytest.raises(JobNotFoundError):
        lines(app)


def test_a_log_driver_that_keeps_nothing(app):
    app.start("echo lost", log_config={"type": "none"}).wait()
    with pytest.raises(LogUnreadableError, match="log driver is none"):
        lines(app)
    with pytest.raises(NotImplementedError):
        next(open_stream(app))


@pytest.mark.parametrize("driver", ["local", "json-file"])
def test_log_drivers(app, driver):
    app.start("echo one; sleep 0.2; echo two", log_config={"type": driver})
    assert lines(app, should_tail=True) == ["one\n", "two\n"]
    assert b"".join(record.data for record in open_stream(app)) == b"one\ntwo\n"


def test_what_is_not_there_is_said_at_once(app):
    app.start("true")
    scheduler: Any = DockerScheduler("test", app.engine)
    with pytest.raises(ValueError, match="combined"):
        scheduler.log_iter(app.app_id, "worker", streams="nonsense")
    for role, k, words in (("no-such-role", 0, "worker"), ("worker", 5, "0")):
        with pytest.raises(ValueError, match=words):
            scheduler.log_iter(app.app_id, role, k)
        with pytest.raises(ValueError, match=words):
            scheduler.log_stream(app.app_id, role, k, Stream.COMBINED)


def test_64_streams_at_once(app):
    app.python(
        "import time\nfor i in range(200): print('line', i, flush=True); time.sleep(0.005)", k=0
    )  # fmt: skip
    followers = [follow(app) for _ in range(64)]
    for follower in followers:
        follower.join()
    expected = b"".join(b"line %d\n" % i for i in range(200))
    assert [follower.data == expected for follower in followers] == [True] * 64
    assert not any(follower.cuts for follower in followers)
