"""Where a log says that its container was started again; and logs that an engine withholds."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import docker.errors
import pytest

from torchx_tui.backends.docker import log_stream
from torchx_tui.backends.docker.log_stream import DockerLogStream
from torchx_tui.logs.source.stream import TimeCursor
from torchx_tui.specs import LogUnreadableError

# Seconds into a minute, and what was printed.
Lines = list[tuple[float, str]]


def stamp(second: float) -> str:
    at = datetime.fromtimestamp(1_790_000_000 + second, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"


class Recorded:
    """An engine that has one container and its log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any], lines: Lines, restarts: int = 0) -> None:
        self.found = {
            "Id": "1",
            "Config": {"Tty": True},
            "HostConfig": {},
            "State": {"Status": "exited", **state},
            "RestartCount": restarts,
        }
        self.log = [(second, f"{stamp(second)} {text}\n".encode()) for second, text in lines]
        monkeypatch.setattr(log_stream, "find_replica", lambda *_: {"Id": "1"})
        monkeypatch.setattr(log_stream, "ask", self.ask)

    def new_client(self, _timeout: object) -> Any:
        return SimpleNamespace(api=SimpleNamespace(inspect_container=lambda _: self.found), close=lambda: None)

    def ask(self, _client: object, _method: str, _path: str, params: dict[str, Any]) -> Any:
        since = float(params.get("since", 0)) - 1_790_000_000
        answer = [b"".join(line for second, line in self.log if second >= since), b""]
        return SimpleNamespace(read=lambda: answer.pop(0), close=lambda: None, shut=lambda: None)

    def translate_errors(self, _app_id: str) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, cursor: TimeCursor | None = None, most: int = 1000) -> tuple[list[str], TimeCursor | None]:
        """Return what a reader gets, and where it is then."""
        reading = DockerLogStream(self, "app", "worker", 0, cursor=cursor, together=0)  # type: ignore[arg-type]
        texts = [record.data.decode().strip() for record in itertools.islice(reading, most)]
        return texts, reading.cursor


AGAIN = "-- worker/0 was restarted: its log continues --"


def test_a_line_that_was_logged_after_the_end_is_not_taken_for_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"Status": "running", "StartedAt": stamp(15), "FinishedAt": stamp(10)}
    engine = Recorded(monkeypatch, state, [(9.9, "one"), (10.3, "late"), (15.1, "two")])
    _, cursor = engine.read(most=2)
    engine.found["State"]["Status"] = "exited"
    assert engine.read(cursor)[0] == [AGAIN, "two"]


def test_a_start_that_was_noted_late_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Recorded(monkeypatch, {"StartedAt": stamp(12), "FinishedAt": stamp(20)}, [(11.0, "one"), (13.0, "two")])
    _, cursor = engine.read(most=1)
    assert engine.read(cursor)[0] == ["two"]


def test_no_line_is_lost_where_a_reader_stops_at_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"StartedAt": stamp(50), "FinishedAt": stamp(55)}
    engine = Recorded(monkeypatch, state, [(1.0, "one"), (50.1, "two"), (50.3, "three")])
    _, cursor = engine.read(most=1)
    texts, cursor = engine.read(cursor, most=1)
    assert texts == [AGAIN]
    assert engine.read(cursor)[0][-2:] == ["two", "three"]


def test_what_is_printed_on_a_terminal_is_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_log_that_the_engine_does_not_give(
    monkeypatch: pytest.MonkeyPatch, driver: str, answer: str, error: type[Exception], words: str
) -> None:
    engine = Recorded(monkeypatch, {"StartedAt": stamp(0)}, [])
    engine.found["HostConfig"] = {"LogConfig": {"Type": driver}}

    def refuse(*_: object) -> None:
        raise docker.errors.APIError(answer)

    monkeypatch.setattr(log_stream, "ask", refuse)
    with pytest.raises(error, match=words):
        engine.read()
