"""Where a log says that its container was started again; and logs that an engine withholds."""

import itertools
from contextlib import nullcontext
from datetime import datetime, timezone
from types import SimpleNamespace

import docker.errors
import pytest

from torchx_tui.backends.docker import log_stream
from torchx_tui.backends.docker.log_stream import DockerLogStream
from torchx_tui.backends.types import Stream
from torchx_tui.specs.errors import LogUnreadableError, SchedulerError

# Seconds into a minute, and what was printed.
Lines = list[tuple[float, str]]


def stamp(second):
    at = datetime.fromtimestamp(1_790_000_000 + second, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"


class Recorded:
    """An engine that has one container and its log."""

    opened = 0
    """Clients and answers that were not closed."""

    def __init__(self, monkeypatch, state, lines, restarts=0):
        self.found = {
            "Id": "1",
            "Config": {"Tty": True},
            "HostConfig": {},
            "State": {"Status": "exited", **state},
            "RestartCount": restarts,
        }
        self.log = [(second, f"{stamp(second)} {text}\n".encode()) for second, text in lines]
        self.asked = []
        monkeypatch.setattr(log_stream, "find_replica", lambda *_: {"Id": "1"})
        monkeypatch.setattr(log_stream, "ask", self.ask)

    def new_client(self, _timeout):
        self.opened += 1
        return SimpleNamespace(api=SimpleNamespace(inspect_container=lambda _: self.inspected()), close=self.closed)

    def inspected(self):
        return self.found

    def closed(self):
        self.opened -= 1

    def ask(self, _client, _method, _path, params):
        self.asked.append(params)
        assert len(self.asked) < 20, "it is asked again and again"
        since = float(params.get("since", 0)) - 1_790_000_000
        answer = [b"".join(line for second, line in self.log if second >= since), b""]
        self.opened += 1
        return SimpleNamespace(read=lambda: answer.pop(0), close=self.closed, shut=lambda: None)

    def translate_errors(self, _app_id):
        return nullcontext()

    def read(self, cursor=None, most=1000):
        """Return what a reader gets, and where it is then."""
        reading = DockerLogStream(self, "app", "worker", 0, cursor=cursor, together=0)  # type: ignore[arg-type]
        texts = [record.data.decode().strip() for record in itertools.islice(reading, most)]
        return texts, reading.cursor


AGAIN = "-- worker/0 was restarted: its log continues --"


def test_late_line_is_not_of_the_next_run(monkeypatch):
    state = {"Status": "running", "StartedAt": stamp(15), "FinishedAt": stamp(10)}
    engine = Recorded(monkeypatch, state, [(9.9, "one"), (10.3, "late"), (15.1, "two")])
    _, cursor = engine.read(most=2)
    engine.found["State"]["Status"] = "exited"
    assert engine.read(cursor)[0] == [AGAIN, "two"]


@pytest.mark.parametrize("end", [20, 12])
def test_a_start_that_was_noted_late_is_no_second_one(monkeypatch, end):
    engine = Recorded(monkeypatch, {"StartedAt": stamp(12), "FinishedAt": stamp(end)}, [(11.0, "one"), (13.0, "two")])
    _, cursor = engine.read(most=1)
    assert engine.read(cursor)[0] == ["two"]


def test_no_line_is_lost_where_a_reader_stops_at_the_words(monkeypatch):
    state = {"StartedAt": stamp(50), "FinishedAt": stamp(55)}
    engine = Recorded(monkeypatch, state, [(1.0, "one"), (50.1, "two"), (50.3, "three")])
    _, cursor = engine.read(most=1)
    texts, cursor = engine.read(cursor, most=1)
    assert texts == [AGAIN]
    assert engine.read(cursor)[0][-2:] == ["two", "three"]


def test_what_is_printed_on_a_terminal_is_stdout(monkeypatch):
    engine = Recorded(monkeypatch, {"StartedAt": stamp(0), "FinishedAt": stamp(10)}, [(1, "one"), (2, "two")])
    reading = DockerLogStream(engine, "app", "worker", 0, together=0)  # type: ignore[arg-type]
    assert [(record.stream, record.data.decode().strip()) for record in reading] == [("o", "one"), ("o", "two")]


@pytest.mark.parametrize(
    ("driver", "answer", "error", "words"),
    [
        ("none", "no", LogUnreadableError, "log driver is none, which keeps nothing"),
        ("syslog", "configured logging driver does not support reading", LogUnreadableError, "log driver is syslog"),
        ("json-file", "it is broken", docker.errors.APIError, "it is broken"),
    ],
)
def test_a_log_that_the_engine_does_not_give(monkeypatch, driver, answer, error, words):
    engine = Recorded(monkeypatch, {"StartedAt": stamp(0)}, [])
    engine.found["HostConfig"] = {"LogConfig": {"Type": driver}}

    def refuse(*_):
        raise docker.errors.APIError(answer)

    monkeypatch.setattr(log_stream, "ask", refuse)
    with pytest.raises(error, match=words):
        engine.read()


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ({}, {"stdout": 1, "stderr": 1, "follow": 1}),
        ({"stream": Stream.STDOUT, "follow": False}, {"stdout": 1, "stderr": 0, "follow": 0}),
        ({"stream": Stream.STDERR}, {"stdout": 0, "stderr": 1, "follow": 1}),
        (
            {"since": 1_790_000_000_000_000_005},
            {"stdout": 1, "stderr": 1, "follow": 1, "since": "1790000000.000000005"},
        ),
    ],
)
def test_what_is_asked_for(monkeypatch, options, params):
    engine = Recorded(monkeypatch, {"StartedAt": stamp(0)}, [(1, "one")])
    reading = DockerLogStream(engine, "app", "worker", 0, **options)  # type: ignore[arg-type]
    assert [record.data for record in reading] == [b"one\n"]
    assert engine.asked == [{**params, "timestamps": 1}]
    assert (reading.is_complete, engine.opened) == (True, 0)
    # Where it was left, neither the number of lines nor the time counts.
    options.pop("stream", None)
    again = DockerLogStream(engine, "app", "worker", 0, cursor=reading.cursor, **options)  # type: ignore[arg-type]
    assert list(again) == []
    seconds, rest = divmod(reading.cursor.nanoseconds if reading.cursor else 0, 10**9)
    assert engine.asked[1]["since"] == f"{seconds}.{rest:09d}"


def running(monkeypatch):
    """Return an engine whose container runs, and has printed one line."""
    return Recorded(monkeypatch, {"Status": "running", "StartedAt": stamp(0)}, [(1, "one")])


def test_pause_before_the_log_is_read_again(monkeypatch):
    engine = running(monkeypatch)
    waits = []

    class Waits:
        used = False

        def next(self):
            assert not self.used  # where lines have come, it is waited as shortly as at first
            self.used = True
            waits.append(len(engine.asked))
            if len(waits) == 2:
                engine.log.append((2, f"{stamp(2)} two\n".encode()))
            if len(waits) == 4:
                # It ends, and prints, while what is there is read.
                inspected = iter([dict(engine.found, State=dict(engine.found["State"]))])
                engine.found["State"]["Status"] = "exited"
                engine.inspected = lambda: next(inspected, engine.found)  # type: ignore[method-assign]
                engine.log.append((3, f"{stamp(3)} three\n".encode()))
            return 0.0

    monkeypatch.setattr(log_stream, "LookWaits", Waits)
    texts, _ = engine.read()
    assert texts == ["one", "two", "three"]
    # After the fifth answer it has ended: what the sixth gives is all.
    assert (waits, len(engine.asked), engine.opened) == ([1, 2, 3, 4], 6, 0)


def test_a_container_that_is_started_again_is_said_to_be(monkeypatch):
    engine = running(monkeypatch)
    reading = DockerLogStream(engine, "app", "worker", 0)  # type: ignore[arg-type]
    assert next(reading).data == b"one\n"
    engine.found["State"] |= {"StartedAt": stamp(9), "FinishedAt": stamp(5)}
    engine.found["RestartCount"] = 2
    said = next(reading)
    assert said.data == b"-- worker/0 was restarted (restart 2): its log continues --\n"
    assert (said.stream, said.time) == ("c", 1_790_000_009.0)
    engine.found["State"]["Status"] = "exited"
    assert list(reading) == []
    # Whose restarts are of no interest is told of none.
    quiet = DockerLogStream(engine, "app", "worker", 0, says_restarts=False)  # type: ignore[arg-type]
    assert [record.data for record in quiet] == [b"one\n"]


def test_what_is_held_is_released(monkeypatch):
    engine = running(monkeypatch)
    reading = DockerLogStream(engine, "app", "worker", 0)  # type: ignore[arg-type]
    next(reading)
    assert engine.opened == 2
    reading.close()
    assert engine.opened == 0
    reading.close()
    assert list(reading) == []


def test_the_log_of_a_container_that_was_removed(monkeypatch):
    engine = running(monkeypatch)
    reading = DockerLogStream(engine, "app", "worker", 3)  # type: ignore[arg-type]
    next(reading)

    def gone():
        raise docker.errors.NotFound("no such container")

    engine.inspected = gone  # type: ignore[method-assign]
    with pytest.raises(SchedulerError, match=r"^the container of worker/3 of app was removed, and its log with it"):
        next(reading)
    assert engine.opened == 0
