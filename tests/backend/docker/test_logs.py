"""Logs of a real engine's containers."""

import time
from concurrent.futures import wait
from datetime import datetime, timezone

import pytest
from support.background import in_background
from support.following import Follower
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.docker.scheduler import DockerScheduler


def lines(app, **options):
    return list(DockerScheduler("test", app.engine).log_iter(app.app_id, "worker", **options))  # type: ignore[arg-type]


def open_stream(app, cursor=None):
    return DockerScheduler("test", app.engine).log_stream(app.app_id, "worker", 0, Stream.COMBINED, cursor)


def follow(app):
    return Follower(lambda cursor: open_stream(app, cursor))


def test_a_tail_ends_with_the_app_not_with_its_replica(app):
    app.start("echo once", k=0)
    other = app.start("sleep 3600", k=1)
    reading = in_background(lambda: lines(app, should_tail=True))
    wait([reading], 1.0)
    assert not reading.done()
    other.kill()
    assert reading.result(PATIENCE) == ["once\n"]


def test_a_tail_that_is_wanted_up_to_a_time_ends_then(app):
    app.start("echo now; sleep 3600")
    wait_until(lambda: lines(app), "the first line")
    assert lines(app, should_tail=True, until=datetime.fromtimestamp(time.time() + 1, timezone.utc)) == ["now\n"]


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
    assert b"".join(record.data for record in open_stream(app)).decode() == "".join(expected)


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
