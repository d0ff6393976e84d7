"""Rows of jobs on a scripted server: lists, watches, and answers that come late or are refused."""

from __future__ import annotations

import logging

import pytest
from support.scripted_server import Stream, scripted_server, status
from support.volcano_jobs import make_job
from support.waiting import wait_until

from torchx_tui.backends.kubernetes import watching
from torchx_tui.backends.kubernetes.api_server import ApiError, ForbiddenError
from torchx_tui.backends.kubernetes.watching import JobRows, WatchedNamespaces
from torchx_tui.backends.shared import changes

ALL_JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
TOO_OLD = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}


def jobs_path(namespace):
    return f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"


def job(name, version, phase="Running", namespace="ns", created="2026-11-21T10:00:00Z"):
    made = make_job(name)
    made["metadata"] |= {
        "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version), "creationTimestamp": created,
    }  # fmt: skip
    return {**made, "status": {"state": {"phase": phase, "lastTransitionTime": "2026-11-21T10:00:00Z"}}}


class Scripted:
    """A server whose list and watches of jobs are up to the test, and the rows of it."""

    def __init__(self, made):
        self.made = made
        self.jobs, self.version = [job("first", 5)], "6"
        self.watches, self.changes = [], []
        self.lists = 0
        self.during_list = lambda: None
        made.answers["GET", jobs_path("ns")] = self.answer
        self.rows = JobRows(made.api(), "ns")

    def answer(self, asked):
        if "watch" in asked.params:
            self.watches.append((asked.params["resourceVersion"], Stream()))
            return 200, self.watches[-1][1]
        self.lists += 1
        listed = 200, {"items": self.jobs, "metadata": {"resourceVersion": self.version}}
        return self.during_list() or listed

    def has(self, version, *jobs):
        self.jobs, self.version = list(jobs), str(version)

    def states(self):
        return {row.app_id.removeprefix("ns:"): row.state.name for row in self.rows.rows()}

    def watch(self):
        """Subscribe, and wait until a watch keeps the rows; return what ends it."""
        self.states()
        end = self.rows.subscribe(lambda: self.changes.append("change"))
        wait_until(lambda: self.watches and self.rows.version("ns:first") == "5", "the watch")
        return end

    def put(self, *parts, end=False):
        """Let the newest watch give these events, and end if asked to."""
        self.watches[-1][1].put(*parts)
        if end:
            self.watches[-1][1].end()

    def wait_for_watch(self, number, version):
        wait_until(lambda: len(self.watches) == number, "the next watch")
        assert self.watches[-1][0] == str(version)


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    with scripted_server() as made:
        found = Scripted(made)
        yield found
        found.rows.close()
        for _, stream in found.watches:
            stream.end()


def added(made):
    return {"type": "ADDED", "object": made}


# Lists


def test_late_list_keeps_newer_events(scripted):
    scripted.has(6, job("ends", 5), job("goes", 5), job("stays", 4))

    def events():
        scripted.rows.take("MODIFIED", job("ends", 7, "Completed"))
        scripted.rows.take("DELETED", job("goes", 8))
        scripted.rows.take("ADDED", job("comes", 9))

    scripted.during_list = events
    assert scripted.states() == {"ends": "SUCCEEDED", "stays": "RUNNING", "comes": "RUNNING"}
    # The watch continues after the newest event.
    scripted.during_list = lambda: None
    scripted.rows.subscribe(lambda: None)
    scripted.wait_for_watch(1, 9)
    scripted.has(12, job("stays", 4))
    scripted.rows.read()
    assert scripted.states() == {"stays": "RUNNING"}


def test_server_that_was_reset_is_believed(scripted):
    scripted.rows.take("ADDED", job("newer", 900))
    scripted.has(12, job("older", 4))
    assert scripted.states() == {"older": "RUNNING"}
    scripted.rows.subscribe(lambda: None)
    scripted.wait_for_watch(1, 12)


def test_outdated_list_is_read_again_twice(scripted):
    codes = iter([410, 410, 0, 410, 410, 410, 500])
    scripted.during_list = lambda: (code := next(codes)) and status(code, "Odd", "no")
    assert scripted.states() == {"first": "RUNNING"}
    with pytest.raises(ApiError, match="outdated"):
        scripted.rows.read()
    with pytest.raises(Exception, match="HTTP 500"):
        scripted.rows.read()
    assert list(codes) == []


def test_learnt_reason_is_of_a_version(scripted):
    rows = scripted.rows

    def learnt():
        return [(row.msg, row.finished_at) for row in rows.rows()]

    scripted.watch()
    rows.learn(job("first", 4), "an older one")
    assert learnt() == [("", None)]
    rows.learn(job("first", 5), "it waits", 7.0)
    assert learnt() == [("it waits", 7.0)]
    assert (rows.version("ns:first"), rows.version("ns:two")) == ("5", "")
    # Neither a bookmark nor an odd object changes a row.
    assert rows.take("BOOKMARK", {"metadata": {"resourceVersion": "9"}}) is False
    assert rows.take("ADDED", "odd") is False
    assert rows.take("MODIFIED", job("first", 6)) is False
    assert rows.version("ns:first") == "6"
    assert rows.take("DELETED", job("two", 7)) is False
    assert rows.take("DELETED", job("first", 8)) is True
    assert (learnt(), rows.version("ns:first")) == ([], "")
    rows.take("ADDED", job("first", 10))
    assert learnt() == [("", None)]


# Watches


def test_watch_continues_where_it_was(scripted):
    assert scripted.states() == scripted.states() == {"first": "RUNNING"}
    assert scripted.lists == 2
    end = scripted.watch()
    assert scripted.watches[0][0] == "6"
    lists = scripted.lists
    scripted.put(added(job("second", 7)))
    wait_until(lambda: sorted(scripted.states()) == ["first", "second"], "the second job")
    wait_until(lambda: scripted.changes, "the change")
    # A watch that the server ends continues from the last bookmark.
    scripted.put({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}, end=True)
    scripted.wait_for_watch(2, 20)
    assert scripted.lists == lists
    # If it is too old, the next caller reads the list, and a watch continues from there.
    scripted.has(32, job("third", 31))
    scripted.put(TOO_OLD)
    wait_until(lambda: list(scripted.states()) == ["third"], "the list")
    scripted.wait_for_watch(3, 32)
    assert scripted.lists == lists + 1
    wait_until(lambda: scripted.rows.version("ns:third") == "31", "the watch holds")
    end()
    scripted.watches[2][1].end()
    wait_until(lambda: scripted.rows.version("ns:third") == "", "its end")


def test_broken_watch_is_a_change(scripted):
    scripted.watch()
    lists = scripted.lists
    scripted.put(b"half a", end=True)
    wait_until(lambda: scripted.changes, "that it broke off")
    scripted.wait_for_watch(2, 6)
    assert scripted.lists == lists


def test_outdated_watch_continues_from_a_newer_list(scripted):
    scripted.watch()
    scripted.version = "40"
    scripted.rows.read()
    lists = scripted.lists
    scripted.put(TOO_OLD)
    scripted.wait_for_watch(2, 40)
    assert scripted.lists == lists


def test_odd_event_costs_its_own_row(scripted, monkeypatch, caplog):
    usual = watching.row_of

    def row_of(found, reasons):
        if found["metadata"]["name"] == "odd":
            raise TypeError("a fault of ours")
        return usual(found, reasons)

    monkeypatch.setattr(watching, "row_of", row_of)
    scripted.watch()
    scripted.put(*(added(job(name, 7)) for name in ("second", "odd", "last")))
    wait_until(lambda: sorted(scripted.states()) == ["first", "last", "second"], "the others")
    assert "cannot be read" in caplog.text


# Several namespaces


@pytest.fixture
def watched(scripted):
    return WatchedNamespaces(scripted.made.api(), "ns")


def test_forbidden_namespace_hides_no_other(scripted, watched, caplog):
    scripted.made.answers["GET", jobs_path("theirs")] = status(403, "Forbidden", "alice may not list jobs in theirs")
    watched.add("theirs")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert [row.app_id for row in watched.rows()] == ["ns:first"]
    assert caplog.text.count("the jobs of theirs are not listed: alice may not list jobs in theirs") == 1
    with pytest.raises(ForbiddenError):
        WatchedNamespaces(scripted.made.api(), "theirs").rows()


def test_each_namespace_has_its_own_rows(scripted, watched):
    other = job("of-other", 5, namespace="other", created="2026-11-22T10:00:00Z")
    for path in (jobs_path("other"), ALL_JOBS):
        scripted.made.answers["GET", path] = 200, {"items": [other]}
    watched.add("other")
    watched.add("other")
    # The latest first.
    assert [row.app_id for row in watched.rows()] == ["other:of-other", "ns:first"]
    assert scripted.made.paths("GET") == [jobs_path("ns"), jobs_path("other")]
    ids = ("ns:first", "other:of-other", "ns:gone", "nowhere:first")
    assert [watched.uid(app_id) for app_id in ids] == ["uid-first", "uid-of-other", "", ""]
    # Without a watch what was listed may have changed.
    assert watched.version("ns:first") == ""
    everywhere = WatchedNamespaces(scripted.made.api(), "")
    everywhere.add("ns")
    assert [row.app_id for row in everywhere.rows()] == ["other:of-other"]
    assert scripted.made.paths("GET")[2:] == [ALL_JOBS]
