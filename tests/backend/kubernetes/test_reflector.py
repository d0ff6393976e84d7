"""A copy of a list of objects on a scripted server, and what becomes of it when the server fails."""

import threading

import pytest
from support.scripted_server import Stream, status
from support.waiting import wait_until

from torchx_tui.backends.kube.api_server import ApiError
from torchx_tui.backends.kube.reflector import Reflector
from torchx_tui.backends.shared import changes
from torchx_tui.specs.errors import BackendUnavailableError

PATH = "/things"


def thing(name, version=5):
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}


def event(kind, item):
    return {"type": kind, "object": item}


def name_of(item):
    name = item["metadata"]["name"]
    if name == "odd":
        raise TypeError("a fault of ours")
    return name


class Scripted:
    """A server whose lists and watches are up to the test, and the reflector of it."""

    def __init__(self, made):
        self.made = made
        self.listed = [thing("first")], "6"
        self.list_answer = self.watch_answer = lambda: None
        self.watches, self.lists, self.changes = [], 0, []
        made.answers["GET", PATH] = self.answer
        self.reflector = Reflector(
            made.api(), PATH, name_of, {"labelSelector": "a=b"}, on_change=lambda: self.changes.append(1)
        )

    def answer(self, asked):
        if "watch" in asked.params:
            if refused := self.watch_answer():
                return refused
            self.watches.append((asked.params, Stream()))
            return 200, self.watches[-1][1]
        self.lists += 1
        items, version = self.listed
        return self.list_answer() or (200, {"items": items, "metadata": {"resourceVersion": version}})

    def names(self):
        return sorted(self.reflector.items().values())

    def watch(self):
        self.reflector.start("test")
        self.wait_for_watch(1, 6)

    def put(self, *events, end=False):
        self.watches[-1][1].put(*events)
        if end:
            self.watches[-1][1].end()

    def wait_for_names(self, *names):
        wait_until(lambda: self.names() == list(names), f"{names}")

    def wait_for_watch(self, number, version):
        wait_until(lambda: len(self.watches) == number, "the next watch")
        assert self.watches[-1][0]["resourceVersion"] == str(version)


@pytest.fixture
def scripted(server, monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    found = Scripted(server)
    yield found
    found.reflector.close()
    for _, stream in found.watches:
        stream.end()


def test_each_read_lists_without_a_thread(scripted):
    assert [scripted.names(), scripted.names(), scripted.lists] == [["first"], ["first"], 2]
    assert not scripted.reflector.is_current


def test_watch_goes_on_from_the_list(scripted):
    # A list that was read before is not read again.
    scripted.names()
    scripted.watch()
    params = scripted.watches[0][0]
    assert params.pop("timeoutSeconds").isdigit()
    assert params == {
        "labelSelector": "a=b", "watch": "true", "resourceVersion": "6", "allowWatchBookmarks": "true",
    }  # fmt: skip
    scripted.put(event("ADDED", thing("second")))
    scripted.wait_for_names("first", "second")
    wait_until(lambda: scripted.changes, "the change")
    scripted.put(event("DELETED", thing("first")))
    scripted.wait_for_names("second")
    assert scripted.lists == 1


def test_equal_object_is_no_change(scripted):
    scripted.watch()
    before = len(scripted.changes)
    scripted.put(event("MODIFIED", thing("first", 7)), event("ADDED", thing("second")))
    scripted.wait_for_names("first", "second")
    wait_until(lambda: len(scripted.changes) > before, "the change")
    assert len(scripted.changes) == before + 1


def test_ended_watch_goes_on_from_the_bookmark(scripted):
    scripted.watch()
    scripted.put(event("BOOKMARK", {"metadata": {"resourceVersion": "20"}}), end=True)
    scripted.wait_for_watch(2, 20)
    assert (scripted.lists, scripted.names()) == (1, ["first"])


def test_gone_version_is_listed_again(scripted):
    scripted.watch()
    scripted.listed = [thing("second")], "40"
    scripted.put(event("ERROR", {"code": 410, "message": "too old"}))
    scripted.wait_for_watch(2, 40)
    assert (scripted.lists, scripted.names()) == (2, ["second"])


@pytest.mark.parametrize("text", [b"half a", b'{"type": 1, "object": {}}\n', b'{"type": "ADDED"}\n', b"[1]\n"])
def test_broken_watch_is_begun_again(scripted, text):
    scripted.watch()
    scripted.put(text, end=True)
    scripted.wait_for_watch(2, 6)
    assert (scripted.lists, scripted.names()) == (1, ["first"])


def test_outage_is_an_error_until_the_server_is_back(scripted):
    scripted.watch()
    scripted.watch_answer = lambda: status(503, "Away", "away")
    before = len(scripted.changes)
    scripted.put(end=True)
    wait_until(lambda: not scripted.reflector.is_current, "the outage")
    with pytest.raises(BackendUnavailableError, match="HTTP 503"):
        scripted.names()
    wait_until(lambda: len(scripted.changes) > before, "word of it")
    scripted.watch_answer = lambda: None
    wait_until(lambda: scripted.reflector.is_current, "the next watch")
    assert (scripted.lists, scripted.names()) == (1, ["first"])


def test_refused_watch_is_a_list_now_and_then(scripted):
    scripted.watch_answer = lambda: status(403, "Forbidden", "no watch")
    scripted.reflector.start("test")
    wait_until(lambda: scripted.lists == 3, "lists")
    assert scripted.names() == ["first"]


def test_refused_list_is_an_error(scripted):
    scripted.list_answer = lambda: status(403, "Forbidden", "no list")
    scripted.reflector.start("test")
    with pytest.raises(ApiError, match="no list"):
        scripted.names()


def test_list_that_changed_between_two_pages_is_an_error(scripted):
    scripted.list_answer = lambda: status(410, "Expired", "no")
    with pytest.raises(ApiError, match="outdated"):
        scripted.names()


def test_odd_object_costs_its_own_row(scripted, caplog):
    scripted.watch()
    scripted.put(*(event("ADDED", thing(name)) for name in ("odd", "second")))
    scripted.wait_for_names("first", "second")
    assert "cannot be read" in caplog.text


def test_list_without_a_version_is_not_watched(scripted):
    scripted.listed = [thing("first")], None
    scripted.reflector.start("test")
    assert (scripted.names(), scripted.watches) == (["first"], [])


def test_close_ends_a_watch(scripted):
    before = set(threading.enumerate())
    scripted.watch()
    scripted.reflector.close()
    wait_until(lambda: not {one for one in threading.enumerate() if one.name == "test"} - before, "its thread's end")
    assert not scripted.reflector.is_current
