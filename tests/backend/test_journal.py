"""The journal: a record a launch, safe against crashes, damage and newer formats."""

import json
import os
import subprocess
import sys
import time

import pytest

from torchx_tui.backends.journal import FORMAT, Journal
from torchx_tui.backends.launch_origin import LaunchOrigin
from torchx_tui.specs import AppDef, AppDefError, Role


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
from torchx_tui.backends.journal import Journal
from torchx_tui.specs import AppDef, Role
journal = Journal(Path({str(folder)!r}))
app = AppDef("a", [Role("r", "i", entrypoint="e", args=["x" * 50_000])])
while True:
    record = journal.record_intent(app, "local_cwd", "torchx", {{}})
    journal.update(record, state="RUNNING")
"""
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code])
        deadline = time.monotonic() + 30
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
    assert reader.by_handle(patience=0) == {}
    assert not reader.is_whole
    seen: list[int] = []
    deadline = time.monotonic() + 20
    while not reader.is_whole and time.monotonic() < deadline:
        found = set(reader.by_handle(patience=0.001))
        # Those that are known are the newest ones, without a gap.
        assert found == set(handles[len(handles) - len(found) :])
        seen.append(len(found))
    assert seen == sorted(seen)
    assert set(reader.by_handle()) == set(handles)
    assert reader.is_whole
    assert [record.handle for record in reader.records()] == handles[::-1]
