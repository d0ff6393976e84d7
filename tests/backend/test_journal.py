"""The journal: one record per launch, safe against crashes, damage and newer formats."""

import itertools
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import fields

import pytest
from support.background import in_background
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.history import journal as launch_journal
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import (
    FORMAT,
    LaunchOrigin,
    LaunchRecord,
    decode_record,
    encode_record,
)
from torchx_tui.base.files import read_file
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.roles import AppDef, Role

APP = AppDef("train", [Role("trainer", "image", entrypoint="python3", args=["-c", "print(1)"], num_replicas=2)])
NONE = "local_cwd://torchx/none"


@pytest.fixture
def launch(journal):
    def record_intent(app_id="", component="", **arguments):
        origin = LaunchOrigin(component, arguments)
        return journal.record_intent(
            APP, "local_cwd", "torchx", {"log_dir": "/x"}, origin=origin, expected_app_id=app_id
        )

    return record_intent


@pytest.fixture
def launches(launch):
    """Return a function that records so many launches, oldest first."""
    return lambda count: [launch(f"job{number:03}", "old" if number < 2 else "new") for number in range(count)]


@pytest.fixture
def reader(journal):
    """Return the same journal as another process sees it."""
    return Journal(journal.folder)


@pytest.fixture
def reads(monkeypatch):
    """Return the list of files that have been read."""
    read = []
    monkeypatch.setattr(launch_journal, "read_file", lambda path, limit: read.append(path) or read_file(path, limit))
    return read


@pytest.fixture
def listings(monkeypatch):
    """Return the list of folders that have been listed."""
    listed, list_folder = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or list_folder(folder))
    return listed


def path_of(journal, record):
    return journal.folder / f"{record.id}.json"


# Records


def test_a_launch_comes_back_whole(launch, reader):
    before = time.time()
    record = launch("train-x", "utils.sh", args=["a", "b c"], rate=float("inf"))
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{8}", record.id)
    assert before - 1e-6 <= record.at <= time.time()
    (read,) = reader.records()
    # JSON has no infinity.
    assert read.arguments == {"args": ["a", "b c"], "rate": "inf"}
    record.arguments["rate"] = "inf"
    assert read == record
    assert read.app_def() == APP
    assert (read.component, read.cfg, read.cwd) == ("utils.sh", {"log_dir": "/x"}, os.getcwd())
    assert (read.workspace, read.handle) == ("", "local_cwd://torchx/train-x")


def test_records_are_found_by_handle_and_component(launch, journal):
    first, second, third = launch("one", "a"), launch("two", "a"), launch("three", "b")
    assert journal.records() == [third, second, first]
    assert first.id < second.id < third.id
    assert (journal.find(first.handle), journal.find(NONE)) == (first, None)
    assert (journal.last_launch("a"), journal.last_launch("c")) == (second, None)
    assert journal.launches(lambda name, _: name == "a", 2) == [second, first]


def test_updates_of_two_processes_are_merged(launch, journal, reader):
    record = launch()
    reader.update(record, app_id="train-y", state="SUBMITTED")
    changed = journal.update(record, message="hello")
    assert (changed.app_id, changed.state, changed.message) == ("train-y", "SUBMITTED", "hello")
    assert reader.records() == [changed] == [journal.update(record, message="hello")]
    journal.forget(record)
    assert journal.update(record, state="FAILED") == record
    assert reader.records() == []


def test_a_removed_record_is_gone_for_all_processes(launch, journal, reader):
    record = launch("train-1")
    assert (reader.find(record.handle), reader.is_kept(record)) == (record, True)
    journal.forget(record)
    journal.forget(record)
    journal.note(record, state="RUNNING")
    assert (reader.is_kept(record), reader.find(record.handle), reader.launches(lambda *_: True)) == (False, None, [])
    assert list(journal.folder.iterdir()) == []


def test_a_note_that_cannot_be_written_is_logged(launch, journal, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    record = launch()
    monkeypatch.setattr(launch_journal, "write_private", full)
    journal.note(record, state="RUNNING")
    assert "could not note ['state']" in caplog.text
    with pytest.raises(OSError, match="No space"):
        journal.update(record, state="RUNNING")
    assert journal.records() == [record]


def test_records_are_sorted_by_their_times(launch, journal, reader):
    first, second, third = launch(), launch(), launch()
    first = journal.update(first, at=third.at + 10)
    assert reader.records() == [first, third, second]


def test_the_newer_of_two_records_of_one_handle_is_found(launch, journal, reader):
    older, newer = launch(), launch()
    newer = journal.update(newer, app_id="train-1")
    journal.update(older, app_id="train-1")
    assert journal.find(newer.handle) == reader.find(newer.handle) == newer


def test_files_are_private(launch, journal):
    assert os.stat(path_of(journal, launch())).st_mode & 0o777 == 0o600
    assert os.stat(journal.folder).st_mode & 0o777 == 0o700


def test_killed_writers_leave_whole_records(journal):
    code = f"""
from pathlib import Path
from torchx_tui.backends.history.journal import Journal
from torchx_tui.specs import AppDef, Role
journal = Journal(Path({str(journal.folder)!r}))
app = AppDef("a", [Role("r", "i", entrypoint="e", args=["x" * 50_000])])
while True:
    record = journal.record_intent(app, "local_cwd", "torchx", {{}})
    journal.update(record, state="RUNNING")
"""
    for count in (5, 10, 15):
        process = subprocess.Popen([sys.executable, "-c", code])
        wait_until(lambda count=count: len(list(journal.folder.glob("*.json"))) >= count, "the records")
        process.kill()
        process.wait()
    records = journal.records()
    assert len(records) >= 15
    assert journal.warnings == {}
    assert all(record.app_def().roles[0].args for record in records)


# Formats and damage

OLD = {"format": 1, "id": "1", "at": 1.0, "scheduler": "local_cwd", "session": "torchx", "app": {}}


def test_missing_fields_of_an_old_record_are_empty():
    record = decode_record(json.dumps({**OLD, "read_only": True}).encode(), "1")
    assert record == LaunchRecord("1", 1.0, "local_cwd", "torchx", {})
    assert (record.handle, record.read_only) == ("", False)
    assert encode_record(record).decode().splitlines()[:3] == ["{", ' "format": 1,', ' "id": "1",']


@pytest.mark.parametrize("name", sorted(field.name for field in fields(LaunchRecord)))
def test_a_field_of_another_type_is_refused(name):
    with pytest.raises(ValueError, match=name):
        decode_record(json.dumps({**OLD, name: [7]}).encode(), "1")


@pytest.mark.parametrize("name", ["at", "state_at", "cancelled_at"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", '"soon"', "-1", "9e99", "[" * 5000])
def test_an_impossible_time_is_refused(name, value):
    data = json.dumps({**OLD, name: 12345.5}).replace("12345.5", value)
    with pytest.raises(ValueError):
        decode_record(data.encode(), "1")


def test_a_newer_format_is_not_overwritten(launch, journal, reader):
    path = path_of(journal, launch())
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": FORMAT + 1, "something_new": 1}))
    before = path.read_bytes()
    (read,) = reader.records()
    assert read.read_only
    journal.update(read, state="FAILED")
    assert path.read_bytes() == before


def test_a_broken_app_is_an_error(launch, journal):
    with pytest.raises(AppDefError):
        journal.update(launch(), app={"format": 1}).app_def()


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe", b'{"format": "x", "app": {}, "id": "i"}', b"[" * 5000]
)
def test_a_damaged_record_is_left_out(launch, journal, reader, damage):
    kept, lost = launch(component="a"), launch(component="b")
    path_of(journal, lost).write_bytes(damage)
    assert reader.records() == [kept]
    assert [(name, lost.id in text) for name, text in reader.warnings.items()] == [(lost.id, True)]
    assert reader.find(NONE) is None


def test_only_readable_files_are_records(launch, journal, reader):
    kept, lost = launch(component="a"), launch(component="b")
    path_of(journal, lost).unlink()
    path_of(journal, lost).mkdir()
    (journal.folder / ".hidden.json").write_text("{")
    (journal.folder / "notes.txt").write_text("x")
    assert reader.records() == [kept]
    assert list(reader.warnings) == [lost.id]
    asked = []
    assert reader.launches(lambda name, _: asked.append(name) is not None) == []
    assert asked == ["a"]


# Reading no more than is needed


def test_reading_goes_on_with_the_next_call(launches, reader):
    handles = [record.handle for record in launches(60)]
    assert reader.find_all(handles, patience=0) == {}
    assert (reader.is_whole, reader.read_on(0)) == (False, False)
    seen, deadline = [], time.monotonic() + PATIENCE
    while not reader.is_whole and time.monotonic() < deadline:
        found = set(reader.find_all(handles, patience=0.001))
        # The newest ones are read first.
        assert found == set(handles[len(handles) - len(found) :])
        seen.append(len(found))
    assert seen == sorted(seen)
    assert reader.read_on(PATIENCE)
    assert set(reader.find_all(handles, 0)) == set(handles)
    assert reader.is_whole


def test_an_answer_is_whole_once_it_is_found(launches, reader):
    newest = launches(3)[-1]
    whole = [reader.is_whole]
    for handle in (newest.handle, NONE):
        reader.find(handle)
        whole.append(reader.is_whole)
    assert whole == [True] * 3


def test_an_absent_folder_is_an_empty_journal(reader):
    assert (list(reader.pages()), reader.read_on(0), reader.find_all([])) == ([], True, {})


def test_pages_are_read_on_demand(launches, journal, reader, reads):
    records = launches(30)[::-1]
    pages = reader.pages(first=5, size=10)
    assert next(pages) == (records[:5], 25)
    assert len(reads) == 5
    # A record may go while the others are read.
    path_of(journal, records[7]).unlink()
    assert [(len(page), left) for page, left in pages] == [(9, 15), (10, 5), (5, 0)]
    assert reader.warnings == {}


def test_no_record_is_read_needlessly(launches, reader, reads):
    records = launches(30)
    assert reader.last_launch("new") == records[-1]
    assert len(reads) <= 3
    assert reader.find(records[-2].handle) == records[-2]
    assert len(reads) <= 4
    # Records that have been read are found by what was kept of them.
    assert reader.find(records[0].handle) == records[0]
    del reads[:]
    assert reader.find(records[15].handle) == records[15]
    assert reader.find(NONE) is None
    assert len(reads) == 1
    del reads[:]
    assert reader.records() == records[::-1]
    assert len(reads) == 27  # three are kept


def test_the_last_records_found_are_kept(launches, journal, reader, reads, monkeypatch):
    monkeypatch.setattr(launch_journal, "MAX_KEPT", 2)
    records = launches(3)
    assert reader.find_all([]) == {}
    assert reader.read_on(PATIENCE)
    for number, count in ((0, 1), (1, 1), (0, 0), (2, 1), (0, 0), (1, 1)):
        (journal.folder / "a change").touch()
        del reads[:]
        assert reader.find(records[number].handle) == records[number]
        assert len(reads) == count
        (journal.folder / "a change").unlink()


def test_others_may_read_while_a_long_journal_is_read(launches, reader, monkeypatch):
    records, found = launches(30), []

    def take_turn(_seconds):
        found.append(in_background(lambda: reader.find(records[-1].handle)).result(PATIENCE))

    # Reading the clock takes some time.
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) / 200)
    monkeypatch.setattr(time, "sleep", take_turn)
    assert reader.find(records[0].handle) == records[0]
    assert found
    assert all(one == records[-1] for one in found)


# Changes of other processes


def test_a_changed_handle_is_found(launch, journal, reader):
    record = launch("expected-x")
    assert reader.find(record.handle) == record
    changed = journal.update(record, app_id="42")
    assert reader.find(changed.handle) == changed
    assert reader.find(record.handle) is None


def test_a_folder_with_coarse_times_is_listed_again(launch, journal, reader, monkeypatch):
    now = time.time_ns()
    lately = now - 3 * 10**9
    monkeypatch.setattr(launch_journal.time, "time_ns", lambda: now)
    # The folder has the same time after the second launch: some file systems keep whole seconds.
    for name in ("one", "two"):
        record = launch(name)
        os.utime(journal.folder, ns=(lately, lately))
        assert reader.find(record.handle) == record


def test_a_quiet_folder_is_listed_once_it_changes(launch, journal, reader, listings):
    first = launch("one")
    os.utime(journal.folder, (1, 1))
    assert [reader.find(handle) for handle in (first.handle, first.handle, NONE)] == [first, first, None]
    assert len(listings) == 1
    second = launch("two")
    assert reader.find(second.handle) == second


def test_a_large_folder_is_listed_once_a_second(launches, reader, listings, monkeypatch):
    now_ns, now = time.time_ns(), 100.0
    first, *_ = launches(3)
    monkeypatch.setattr(launch_journal, "MANY", 2)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for now, count in ((100.0, 1), (100.9, 1), (101.1, 2)):  # noqa: B007
        assert reader.find(first.handle) == first
        assert len(listings) == count


def test_own_records_are_found_despite_coarse_times(launch, journal):
    record = launch()
    for app_id in ("abc", "xyz"):
        old, record = record, journal.update(record, app_id=app_id)
        os.utime(journal.folder, (1, 1))
        assert journal.find(record.handle) == record
        assert journal.find(old.handle) is None


def test_only_unsettled_records_are_checked_again(launch, journal, reader, monkeypatch):
    now_ns = time.time_ns()
    begun = launch()
    journal.update(launch(), app_id="one")
    journal.update(launch(), error="no room")
    reader.find_all([])
    assert reader.read_on(PATIENCE)
    assert reader.find("") is None
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    looked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: looked.append(str(path)) or stat(path, **more))

    def checked():
        del looked[:]
        reader.find_all([])
        return [path for path in looked if path.endswith(".json")]

    assert checked() == [str(path_of(journal, begun))]
    reader.forget(begun)
    for remover in (reader, journal):
        one = launch()
        reader.find_all([])
        assert reader.read_on(PATIENCE)
        remover.forget(one)
        reader.find_all([])
        assert checked() == []
