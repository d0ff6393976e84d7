"""The journal: a record a launch, safe against crashes, damage and newer formats."""

import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import asdict, fields

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.history import journal as launch_journal
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import FORMAT, LaunchOrigin, LaunchRecord, decode_record, encode_record
from torchx_tui.specs import AppDef, AppDefError, Role
from torchx_tui.specs.files import read_file


@pytest.fixture
def app():
    return AppDef("train", [Role("trainer", "image", entrypoint="python3", args=["-c", "print(1)"], num_replicas=2)])


def launch(journal, app, **kwargs):
    return journal.record_intent(app, "local_cwd", "torchx", {"log_dir": "/tmp/x"}, **kwargs)


def test_a_launch_comes_back_whole(journal, app):
    record = launch(journal, app, origin=LaunchOrigin("utils.sh", {"args": ["a", "b c"]}), expected_app_id="train-x")
    (read,) = Journal(journal.folder).records()
    assert read == record
    assert read.app_def() == app
    assert (read.component, read.arguments, read.cfg) == ("utils.sh", {"args": ["a", "b c"]}, {"log_dir": "/tmp/x"})
    assert read.handle == "local_cwd://torchx/train-x"


def test_newest_first_and_found_by_handle_and_component(journal, app):
    first = launch(journal, app, origin=LaunchOrigin("a"), expected_app_id="one")
    second = launch(journal, app, origin=LaunchOrigin("a"), expected_app_id="two")
    assert [record.id for record in journal.records()] == [second.id, first.id]
    assert journal.find("local_cwd://torchx/one") == first
    assert journal.find("local_cwd://torchx/three") is None
    assert journal.last_launch("a") == second


def test_update_is_seen_by_another_process(journal, app):
    record = launch(journal, app)
    journal.update(record, app_id="train-y", state="SUBMITTED")
    (read,) = Journal(journal.folder).records()
    assert (read.app_id, read.state) == ("train-y", "SUBMITTED")
    # The stale record in hand does not undo what another process wrote.
    journal.update(record, message="hello")
    (read,) = Journal(journal.folder).records()
    assert (read.app_id, read.message) == ("train-y", "hello")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe", b'{"format": "x", "app": {}, "id": "i"}']
)
def test_a_damaged_record_costs_that_record_only(journal, app, damage):
    kept = launch(journal, app)
    lost = launch(journal, app)
    (journal.folder / f"{lost.id}.json").write_bytes(damage)
    fresh = Journal(journal.folder)
    assert [record.id for record in fresh.records()] == [kept.id]
    (warning,) = fresh.warnings.values()
    assert lost.id in warning


def test_a_newer_format_is_shown_and_not_written(journal, app):
    record = launch(journal, app)
    path = journal.folder / f"{record.id}.json"
    data = json.loads(path.read_text())
    data["format"] = FORMAT + 1
    data["something_new"] = 1
    path.write_text(json.dumps(data))
    before = path.read_bytes()
    (read,) = Journal(journal.folder).records()
    assert read.read_only
    journal.update(read, state="FAILED")
    assert path.read_bytes() == before


def test_an_app_that_cannot_be_read_is_said(journal, app):
    record = launch(journal, app)
    broken = journal.update(record, app={"format": 1})
    with pytest.raises(AppDefError):
        broken.app_def()


def test_files_are_for_this_user_alone(journal, app):
    record = launch(journal, app)
    assert os.stat(journal.folder).st_mode & 0o777 == 0o700
    assert os.stat(journal.folder / f"{record.id}.json").st_mode & 0o777 == 0o600


def test_killed_at_any_instant_leaves_only_whole_records(tmp_path):
    """A process that writes without end is killed: what it left is readable, and half-written files are not records."""
    folder = tmp_path / "journal"
    code = f"""
from pathlib import Path
from torchx_tui.backends.history.journal import Journal
from torchx_tui.specs import AppDef, Role
from torchx_tui.specs.files import read_file
journal = Journal(Path({str(folder)!r}))
app = AppDef("a", [Role("r", "i", entrypoint="e", args=["x" * 50_000])])
while True:
    record = journal.record_intent(app, "local_cwd", "torchx", {{}})
    journal.update(record, state="RUNNING")
"""
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code])
        deadline = time.monotonic() + PATIENCE
        count = len(list(folder.glob("*.json"))) if folder.exists() else 0
        while (not folder.exists() or len(list(folder.glob("*.json"))) < count + 5) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.wait()
    journal = Journal(folder)
    records = journal.records()
    assert len(records) >= 15
    assert journal.warnings == {}
    assert all(record.app_def().roles[0].args for record in records)


def test_forget(journal, app):
    record = launch(journal, app)
    journal.forget(record)
    journal.forget(record)
    assert journal.records() == []


def test_what_there_is_no_time_for_comes_with_the_next_calls_newest_first(journal, app):
    handles = [launch(journal, app, expected_app_id=f"job{number:03}").handle for number in range(60)]
    reader = Journal(journal.folder)
    assert reader.find_all(handles, patience=0) == {}
    assert not reader.is_whole
    seen: list[int] = []
    deadline = time.monotonic() + PATIENCE
    while not reader.is_whole and time.monotonic() < deadline:
        found = set(reader.find_all(handles, patience=0.001))
        # Those that are known are the newest ones, without a gap.
        assert found == set(handles[len(handles) - len(found) :])
        seen.append(len(found))
    assert seen == sorted(seen)
    assert set(reader.find_all(handles)) == set(handles)
    assert reader.is_whole
    assert [record.handle for record in reader.records()] == handles[::-1]


def test_pages_are_read_as_they_are_asked_for_newest_first(journal, app, monkeypatch):
    records = [launch(journal, app, expected_app_id=f"job{number:03}") for number in range(30)]
    reader = Journal(journal.folder)
    read = counted_reads(monkeypatch)
    pages = reader.pages(first=5, size=10)
    page, left = next(pages)
    assert ([one.id for one in page], left) == ([one.id for one in records[:-6:-1]], 25)
    assert len(read) == 5
    assert [(len(page), left) for page, left in pages] == [(10, 15), (10, 5), (5, 0)]


def test_no_further_is_read_than_is_asked_for(journal, app, monkeypatch):
    records = [launch(journal, app, expected_app_id=f"job{number:03}") for number in range(30)]
    reader = Journal(journal.folder)
    read = counted_reads(monkeypatch)
    assert reader.find(records[-2].handle) == records[-2]
    assert len(read) <= 3
    # What was read once is looked up by what was kept of it.
    assert reader.find(records[0].handle) == records[0]
    del read[:]
    assert reader.find(records[15].handle) == records[15]
    assert reader.find("local_cwd://torchx/none") is None
    assert len(read) == 1
    del read[:]
    assert len(reader.records()) == 30
    assert len(read) == 27  # three are kept


def test_the_newest_launch_is_looked_for_no_further_than_it_is(journal, app, monkeypatch):
    records = [launch(journal, app, origin=LaunchOrigin("a" if number > 27 else "b")) for number in range(30)]
    reader = Journal(journal.folder)
    read = counted_reads(monkeypatch)
    assert reader.last_launch("a") == records[-1]
    assert len(read) <= 3


def counted_reads(monkeypatch):
    read = []
    monkeypatch.setattr(launch_journal, "read_file", lambda path, limit: read.append(path) or read_file(path, limit))
    return read


def test_of_the_records_that_were_asked_for_only_the_last_ones_are_kept(journal, app, monkeypatch):
    monkeypatch.setattr(launch_journal, "MAX_KEPT", 2)
    one, two, three = (launch(journal, app, expected_app_id=f"job{number}") for number in range(3))
    reader = Journal(journal.folder)
    reader.find_all([])
    assert reader.read_on(PATIENCE)
    read = counted_reads(monkeypatch)
    for record, count in ((one, 1), (two, 1), (one, 0), (three, 1), (one, 0), (two, 1)):
        (journal.folder / "a change").touch()
        del read[:]
        assert reader.find(record.handle) == record
        assert len(read) == count
        (journal.folder / "a change").unlink()


def test_a_handle_that_changes_is_found_by_another_process(journal, app):
    record = launch(journal, app, expected_app_id="expected-x")
    reader = Journal(journal.folder)
    assert reader.find("local_cwd://torchx/expected-x") == record
    changed = journal.update(record, app_id="42")
    assert reader.find("local_cwd://torchx/42") == changed
    assert reader.find("local_cwd://torchx/expected-x") is None
    journal.forget(changed)
    assert reader.find("local_cwd://torchx/42") is None


@pytest.mark.parametrize("name", ["at", "state_at", "cancelled_at"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", '"soon"', "-1", "9e99", "[" * 5000])
def test_a_time_that_is_none_costs_that_record_only(journal, app, name, value):
    kept, odd = launch(journal, app), launch(journal, app)
    journal.update(odd, state_at=12345.5, cancelled_at=12345.5)
    path = journal.folder / f"{odd.id}.json"
    path.write_text(re.sub(rf'"{name}": [\d.]+', f'"{name}": {value}', path.read_text()))
    assert [one.id for one in Journal(journal.folder).records()] == [kept.id]
    assert Journal(journal.folder).find("local_cwd://torchx/none") is None


def test_what_json_cannot_hold_does_not_cost_the_record(journal, app):
    record = launch(journal, app, origin=LaunchOrigin("a", {"rate": float("inf")}))
    (read,) = Journal(journal.folder).records()
    assert (read.id, read.arguments) == (record.id, {"rate": "inf"})


def test_pages_have_the_sizes_that_were_asked_for(journal, app):
    for _ in range(7):
        launch(journal, app)
    assert [(len(page), left) for page, left in journal.pages(2, 3)] == [(2, 5), (3, 2), (2, 0)]
    assert list(Journal(journal.folder / "none").pages()) == []
    assert Journal(journal.folder / "none").read_on(0)


def test_the_newest_launch_of_a_component(journal, app):
    for number in range(3):
        launch(journal, app, origin=LaunchOrigin("a.py:train", {"number": str(number)}))
        launch(journal, app, origin=LaunchOrigin("b.py:train"))
    found = journal.last_launch("a.py:train")
    assert found is not None
    assert found.arguments == {"number": "2"}
    assert journal.last_launch("c.py:train") is None
    assert [one.arguments["number"] for one in journal.launches(lambda name, _: name == "a.py:train", 2)] == ["2", "1"]


def test_a_record_that_another_process_removed_is_found_no_more(journal, app):
    other = Journal(journal.folder)
    record = journal.update(launch(journal, app), app_id="train-1")
    assert other.find(record.handle) == record
    assert other.is_kept(record)
    journal.forget(record)
    journal.forget(record)
    assert not other.is_kept(record)
    assert other.find(record.handle) is None
    assert other.launches(lambda *_: True) == []


def test_of_two_records_of_one_handle_the_newer_counts(journal, app):
    older = launch(journal, app)
    newer = launch(journal, app)
    # The older one is noted later.
    journal.update(newer, app_id="train-1")
    journal.update(older, app_id="train-1")
    for one in (journal, Journal(journal.folder)):
        found = one.find("local_cwd://torchx/train-1")
        assert found is not None
        assert found.id == newer.id


def test_records_come_by_their_times_also_where_a_clock_was_set_meanwhile(journal, app):
    first, second, third = (launch(journal, app) for _ in range(3))
    journal.update(first, at=third.at + 10)
    assert [record.id for record in Journal(journal.folder).records()] == [first.id, third.id, second.id]


def test_a_note_that_cannot_be_written_costs_the_note_alone(journal, app, monkeypatch, caplog):
    record = launch(journal, app)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launch_journal, "write_private", full)
    journal.note(record, state="RUNNING")
    assert "could not note ['state']" in caplog.text
    with pytest.raises(OSError, match="No space"):
        journal.update(record, state="RUNNING")
    assert journal.records()[0].state == record.state


def test_reading_that_is_asked_to_go_on_says_when_all_is_read(journal, app):
    records = [journal.update(launch(journal, app), app_id=f"train-{number}") for number in range(5)]
    other = Journal(journal.folder)
    assert other.find_all([records[0].handle], 0) == {}
    assert other.is_whole is False
    assert other.read_on(0) is False
    assert other.read_on(PATIENCE) is True
    assert other.find_all([records[0].handle], 0) == {records[0].handle: records[0]}
    assert other.is_whole is True


OLD = {"format": 1, "id": "1", "at": 1.0, "scheduler": "local_cwd", "session": "torchx", "app": {}}


def test_an_old_record_has_nothing_of_what_came_later(journal):
    record = decode_record(json.dumps(OLD).encode(), "1")
    assert record == LaunchRecord("1", 1.0, "local_cwd", "torchx", {})
    known = {name: value for name, value in asdict(record).items() if value not in ({}, "", None, False)}
    assert known == {"id": "1", "at": 1.0, "scheduler": "local_cwd", "session": "torchx"}
    assert record.handle == ""


@pytest.mark.parametrize("name", sorted({field.name for field in fields(LaunchRecord)} - {"read_only"}))
def test_a_field_of_another_kind_costs_the_record(name):
    with pytest.raises(ValueError, match=name):
        decode_record(json.dumps({**OLD, name: [7]}).encode(), "1")


def test_what_is_no_record_lies_beside_the_records_in_peace(journal, app):
    record = launch(journal, app)
    (journal.folder / ".hidden.json").write_text("{")
    (journal.folder / "notes.txt").write_text("x")
    fresh = Journal(journal.folder)
    assert [one.id for one in fresh.records()] == [record.id]
    assert fresh.warnings == {}


def test_a_record_that_may_not_be_read_costs_that_record_only(journal, app):
    kept, lost = (launch(journal, app, origin=LaunchOrigin(name)) for name in ("a", "b"))
    path = journal.folder / f"{lost.id}.json"
    path.unlink()
    path.mkdir()
    fresh = Journal(journal.folder)
    assert [one.id for one in fresh.records()] == [kept.id]
    assert list(fresh.warnings) == [lost.id]
    # Nobody is asked whether it is wanted.
    asked = []
    assert fresh.launches(lambda name, _: asked.append(name) is not None) == []
    assert asked == ["a"]


def test_ids_are_made_of_the_time_and_differ(journal, app):
    before = time.time()
    first, second = launch(journal, app), launch(journal, app)
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{8}", first.id)
    assert first.id < second.id
    assert before - 1e-6 <= first.at <= second.at <= time.time()
    assert (first.workspace, first.expected_app_id, first.cwd) == ("", "", os.getcwd())


def test_an_update_gives_the_record_as_it_is_then(journal, app):
    record = launch(journal, app)
    changed = journal.update(record, state="RUNNING")
    assert changed.state == "RUNNING"
    assert journal.update(record, state="RUNNING") == changed
    journal.forget(record)
    assert journal.update(record, state="FAILED") == record


def test_a_record_that_is_removed_while_the_others_are_read_is_left_out(journal, app):
    first, second, third = (launch(journal, app) for _ in range(3))
    pages = journal.pages(1, 1)
    assert [record.id for record in next(pages)[0]] == [third.id]
    (journal.folder / f"{second.id}.json").unlink()
    assert [[record.id for record in page] for page, _ in pages] == [[], [first.id]]
    assert journal.warnings == {}


def test_a_mark_in_a_file_makes_no_record_read_only():
    record = decode_record(json.dumps({**OLD, "read_only": True}).encode(), "1")
    assert record.read_only is False
    assert decode_record(json.dumps({**OLD, "format": 2}).encode(), "1").read_only is True
    assert encode_record(record).decode().splitlines()[:3] == ["{", ' "format": 1,', ' "id": "1",']


def test_an_answer_is_whole_where_all_was_found_or_all_was_read(journal, app):
    records = [journal.update(launch(journal, app), app_id=f"train-{number}") for number in range(3)]
    other = Journal(journal.folder)
    assert other.is_whole  # nothing was asked yet
    assert other.find(records[-1].handle) == records[-1]
    assert other.is_whole  # the others were not read
    assert other.find("local_cwd://torchx/none") is None
    assert other.is_whole  # there is no more to read
    assert Journal(journal.folder / "none").find_all([]) == {}


def test_what_another_process_writes_is_found_at_once_however_coarse_the_folders_time_is(journal, app, monkeypatch):
    first = launch(journal, app, expected_app_id="one")
    reader = Journal(journal.folder)
    # A file system that keeps whole seconds, or lags: the folder's time is no other after the second launch.
    now = time.time_ns()
    lately = now - 3 * 10**9
    monkeypatch.setattr(launch_journal.time, "time_ns", lambda: now)
    os.utime(journal.folder, ns=(lately, lately))
    assert reader.find(first.handle) == first
    second = launch(journal, app, expected_app_id="two")
    os.utime(journal.folder, ns=(lately, lately))
    assert reader.find(second.handle) == second


def test_a_folder_that_was_quiet_for_long_is_listed_again_once_it_changes(journal, app, monkeypatch):
    first = launch(journal, app, expected_app_id="one")
    reader = Journal(journal.folder)
    os.utime(journal.folder, (1, 1))
    listed = counted_listings(monkeypatch)
    assert [reader.find(first.handle) for _ in range(3)] == [first] * 3
    assert reader.find("local_cwd://torchx/two") is None
    assert len(listed) == 1
    second = launch(journal, app, expected_app_id="two")
    assert reader.find(second.handle) == second


def counted_listings(monkeypatch):
    listed = []
    list_folder = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or list_folder(folder))
    return listed


def test_a_folder_of_many_records_that_changes_is_listed_again_after_a_while(journal, app, monkeypatch):
    now_ns, now = time.time_ns(), 100.0
    first, _, _ = (launch(journal, app, expected_app_id=f"job{number}") for number in range(3))
    monkeypatch.setattr(launch_journal, "MANY", 2)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reader = Journal(journal.folder)
    listed = counted_listings(monkeypatch)
    for now, count in ((100.0, 1), (100.9, 1), (101.1, 2)):  # noqa: B007
        assert reader.find(first.handle) == first
        assert len(listed) == count


def test_what_this_process_writes_is_found_at_once_however_coarse_times_are(journal, app):
    record = journal.update(launch(journal, app), app_id="abc")
    os.utime(journal.folder, (1, 1))
    assert journal.find("local_cwd://torchx/abc") == record
    changed = journal.update(record, app_id="xyz")
    os.utime(journal.folder, (1, 1))
    assert journal.find("local_cwd://torchx/xyz") == changed
    assert journal.find("local_cwd://torchx/abc") is None


def test_only_records_whose_handle_may_change_are_looked_at_again(journal, app, monkeypatch):
    now_ns = time.time_ns()
    journal.update(launch(journal, app), app_id="one")
    journal.update(launch(journal, app), error="no room")
    begun = launch(journal, app)
    reader = Journal(journal.folder)
    assert reader.find_all([]) == {}
    assert reader.read_on(PATIENCE)
    assert reader.find("") is None
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    looked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: looked.append(str(path)) or stat(path, **more))
    reader.find_all([])
    assert [path for path in looked if path.endswith(".json")] == [f"{journal.folder}/{begun.id}.json"]
    # Nor is what this process, or another one, has removed.
    reader.forget(begun)
    for remover in (reader, journal):
        one = launch(journal, app)
        reader.find_all([])
        assert reader.read_on(PATIENCE)
        remover.forget(one)
        reader.find_all([])
        del looked[:]
        reader.find_all([])
        assert [path for path in looked if path.endswith(".json")] == []


def test_others_have_their_turn_while_a_long_journal_is_read(journal, app, monkeypatch):
    records = [launch(journal, app, expected_app_id=f"job{number}") for number in range(30)]
    reader, found = Journal(journal.folder), []

    def take_turn(_seconds):
        thread = threading.Thread(target=lambda: found.append(reader.find(records[-1].handle)))
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()

    # To look at the clock takes some time.
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(looks) / 200)
    monkeypatch.setattr(time, "sleep", take_turn)
    assert reader.find(records[0].handle) == records[0]
    assert found
    assert all(one == records[-1] for one in found)
