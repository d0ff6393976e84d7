"""What comes late, what cannot be read, and what may not be listed: the other rows are as they are."""

from __future__ import annotations

import logging
import threading
from typing import Any, cast

import pytest
from support.volcano_jobs import make_job
from support.waiting import wait_until

from torchx_tui.backends.kubernetes import watching
from torchx_tui.backends.kubernetes.api_server import ApiError, ForbiddenError
from torchx_tui.backends.kubernetes.watching import JobRows, JobWatch, WatchedNamespaces
from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.changes import Subscribers
from torchx_tui.specs import AppState

Page = tuple[list[Any], str]


def job(name, version, phase="Running"):
    made = make_job(name)
    made["metadata"] |= {"namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    made["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z"
    return {**made, "status": {"state": {"phase": phase, "lastTransitionTime": "2026-11-21T10:00:00Z"}}}


@pytest.fixture
def rows():
    return JobRows(cast(Any, None), "ns")


def states(rows):
    return {row.app_id.partition(":")[2]: row.state for row in rows._jobs.values()}


def test_a_list_that_comes_late_takes_back_nothing_that_a_watch_has_told(rows, monkeypatch):
    def pages(_server, _namespace):
        yield [job("ends", 5), job("goes", 5), job("stays", 4)], "6"
        # Told by a watch, while the answer is on its way.
        rows.take("MODIFIED", job("ends", 7, "Completed"))
        rows.take("DELETED", job("goes", 8))
        rows.take("ADDED", job("comes", 9))

    monkeypatch.setattr(watching, "pages", pages)
    rows.read()
    assert states(rows) == {"ends": AppState.SUCCEEDED, "stays": AppState.RUNNING, "comes": AppState.RUNNING}
    assert rows._version == "9"
    # What is gone when the list is read once more is gone.
    monkeypatch.setattr(watching, "pages", lambda _server, _namespace: iter([([job("stays", 4)], "12")]))
    rows.read()
    assert states(rows) == {"stays": AppState.RUNNING}


def test_a_server_that_was_set_back_is_believed(rows, monkeypatch):
    rows.take("ADDED", job("newer", 900))
    monkeypatch.setattr(watching, "pages", lambda _server, _namespace: iter([([job("older", 4)], "12")]))
    rows.read()
    assert states(rows) == {"older": AppState.RUNNING}
    assert rows._version == "12"


def test_an_event_that_cannot_be_read_costs_its_own_row(rows, monkeypatch, caplog):
    usual = watching.row_of

    def row_of(found, reasons):
        if found["metadata"]["name"] == "odd":
            raise TypeError("nobody foresaw this")
        return usual(found, reasons)

    monkeypatch.setattr(watching, "row_of", row_of)
    told: list[int] = []
    watch = JobWatch(rows, cast(Any, None), lambda: told.append(1))
    for name in ("first", "odd", "last"):
        if watch._take("ADDED", job(name, 3)):
            told.append(1)
    assert sorted(states(rows)) == ["first", "last"]
    assert len(told) == 2
    assert "cannot be read" in caplog.text


class Breaking:
    """Listens, and fails the first time as nobody foresaw."""

    times = 0

    def __init__(self, on_change):
        self._on_change = on_change
        self._stop = threading.Event()

    def listen(self):
        self.times += 1
        if self.times == 1:
            raise KeyError("an object without a name")
        self._on_change()
        self._stop.wait()

    def close(self):
        self._stop.set()


def test_a_listener_that_fails_is_begun_again_and_whoever_wants_to_know_is_told(monkeypatch, caplog):
    monkeypatch.setattr(changes, "_FIRST_RETRY_S", 0.01)
    made: list[Breaking] = []

    def listener(on_change):
        made.append(Breaking(on_change))
        return made[-1]

    told: list[int] = []
    subscribers = Subscribers("test-listener", listener)
    subscribers.subscribe(lambda: told.append(1))
    wait_until(lambda: made[0].times == 2, "the second time")
    wait_until(lambda: told, "a change")
    assert "test-listener ended, and is begun again" in caplog.text
    subscribers.close()


class Listed:
    """The rows of a namespace, or why there are none."""

    refused: ForbiddenError | None = None

    def __init__(self, _server, namespace):
        self.namespace = namespace

    def rows(self):
        if self.namespace == "theirs":
            raise ForbiddenError("alice may not list jobs in theirs", 403)
        return [watching.row_of(job("mine", 3), watching.KnownReasons())]


def test_a_namespace_that_may_not_be_listed_hides_no_other(monkeypatch, caplog):
    monkeypatch.setattr(watching, "JobRows", Listed)
    watched = WatchedNamespaces(cast(Any, None), "ours")
    watched.add("theirs")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [row.app_id for row in watched.rows()] == ["ns:mine"]
    assert caplog.text.count("the jobs of theirs are not listed: alice may not list jobs in theirs") == 1
    with pytest.raises(ForbiddenError):
        WatchedNamespaces(cast(Any, None), "theirs").rows()


def test_each_namespace_has_rows_of_its_own(monkeypatch):
    asked: list[str] = []

    def pages(_server, namespace):
        asked.append(namespace)
        made = job(f"of-{namespace}", 5)
        made["metadata"] |= {"namespace": namespace or "any", "creationTimestamp": f"2026-11-2{len(asked)}T10:00:00Z"}
        yield [made], "6"

    monkeypatch.setattr(watching, "pages", pages)
    watched = WatchedNamespaces(cast(Any, None), "ns")
    watched.add("other")
    watched.add("other")
    # The latest first.
    assert [row.app_id for row in watched.rows()] == ["other:of-other", "ns:of-ns"]
    assert asked == ["ns", "other"]
    assert watched.uid("ns:of-ns") == "uid-of-ns"
    assert watched.uid("other:of-other") == "uid-of-other"
    assert (watched.uid("ns:gone"), watched.uid("nowhere:of-ns")) == ("", "")
    # Nobody watches: what was listed may be another version by now.
    assert watched.version("ns:of-ns") == ""
    everywhere = WatchedNamespaces(cast(Any, None), "")
    everywhere.add("ns")
    asked.clear()
    assert [row.app_id for row in everywhere.rows()] == ["any:of-"]
    assert asked == [""]


def test_what_is_learnt_of_a_job_holds_for_that_version_of_it(rows):
    rows.take("ADDED", job("one", 5))
    told = lambda: [(row.msg, row.finished_at) for row in rows._jobs.values()]  # noqa: E731
    rows.learn(job("one", 4), "an older one")
    assert told() == [("", None)]
    rows.learn(job("one", 5), "it waits", 7.0)
    assert told() == [("it waits", 7.0)]
    assert rows.version("ns:one") == ""
    rows.watched(True)
    assert (rows.version("ns:one"), rows.version("ns:two")) == ("5", "")
    # What is no job, or is of no known kind, changes none.
    assert rows.take("BOOKMARK", {"metadata": {"resourceVersion": "9"}}) is False
    assert rows.take("ADDED", "odd") is False
    assert rows.take("MODIFIED", job("one", 6)) is False
    assert rows.version("ns:one") == "6"
    assert rows.take("DELETED", job("two", 7)) is False
    assert rows.take("DELETED", job("one", 8)) is True
    assert (told(), rows.version("ns:one")) == ([], "")
    rows.take("ADDED", job("one", 10))
    assert told() == [("", None)]


def test_a_list_that_grows_too_old_while_it_is_read_is_begun_anew_some_times(rows, monkeypatch):
    refused = iter([410, 410, 0, 410, 410, 410, 500])

    def pages(_server, _namespace):
        yield [job("old", 1)], "2"
        if code := next(refused):
            raise ApiError("no", code)
        yield [job("new", 3)], "4"

    monkeypatch.setattr(watching, "pages", pages)
    rows.read()
    assert sorted(states(rows)) == ["new", "old"]
    for code in (410, 500):
        with pytest.raises(ApiError) as raised:
            rows.read()
        assert raised.value.status == code
    assert list(refused) == []
