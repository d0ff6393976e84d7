"""The git state that is noted beside a launch, and what has changed when the job is launched again."""

import os
import threading
import time
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from support.background import in_background
from support.canned_launches import CannedLaunches
from support.git import WorkTree
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.api import Capabilities
from torchx_tui.backends.history import provenance
from torchx_tui.backends.history.journal import Journal, LaunchRecord
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.history.provenance import Changed, GitState, GitStates, git_state
from torchx_tui.specs.roles import AppDef, Role


@pytest.fixture
def tree(tmp_path, monkeypatch):
    made = WorkTree(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def scheduler():
    return CannedLaunches()


@pytest.fixture
def begin(runner):
    """Return a function that launches an app of some images, and returns its handle."""

    def begin(*images, **origin):
        app = AppDef("job", [Role(image[:1] or "r", image, entrypoint="true") for image in images])
        return runner.run(app, "local_cwd", {}, origin=LaunchOrigin("jobs.py:job", **origin))

    return begin


@pytest.fixture
def noted(runner):
    """Return a function that waits for the note beside a launch, and returns its record."""

    def noted(handle):
        found = []

        def has_world():
            found[:] = [runner.journal.find(handle)]
            return found[0] is not None and found[0].world

        wait_until(has_world, "the note")
        return found[0]

    return noted


@pytest.fixture
def launch(begin, noted):
    return lambda **origin: noted(begin("one:1", "two:1", **origin))


@pytest.fixture
def hanging_git(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "git").chmod(0o755)
    return lambda: monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.fixture
def git_calls(monkeypatch):
    """Return a mock that calls `git_state`."""
    calls = Mock(side_effect=git_state)
    monkeypatch.setattr(provenance, "git_state", calls)
    return calls


@pytest.fixture
def continued(git_calls):
    """Return the event for which queries of git wait."""
    event = threading.Event()
    git_calls.side_effect = lambda *arguments: event.wait(PATIENCE) and git_state(*arguments)
    return event


# Git


def state_of(folder) -> Any:
    return git_state(folder, PATIENCE)


def test_states_of_a_work_tree(tree):
    clean = state_of(tree.folder)
    assert clean == GitState(tree.git("rev-parse", "HEAD"), False)
    (tree.folder / "below").mkdir()
    tree.write("untracked.txt", "x")
    assert state_of(tree.folder / "below") == clean
    # Git may print names that are not text.
    tree.git("config", "core.quotePath", "false")
    (tree.folder / os.fsdecode(b"\xff.py")).write_text("x")
    tree.git("add", "--all")
    assert state_of(tree.folder) == GitState(clean.commit, True)
    (tree.folder / ".git/index").write_text("damaged")
    assert state_of(tree.folder) == GitState()


def test_no_state_without_git(tmp_path, tree, monkeypatch):
    (tmp_path / "empty").mkdir()
    tree.git("init", "--quiet", str(tmp_path / "empty"))
    assert [state_of(tmp_path / name) for name in ("", "empty")] == [None, None]
    assert state_of(tmp_path / "gone") == GitState()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert state_of(tree.folder) is None


def test_a_hanging_git_is_ended(tmp_path, hanging_git):
    hanging_git()
    began = time.monotonic()
    assert git_state(tmp_path, 0.2) == GitState()
    assert time.monotonic() - began < PATIENCE


def test_no_program_of_a_repository_is_run(tmp_path, tree):
    (tmp_path / "monitor").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "monitor").chmod(0o755)
    tree.git("config", "core.fsmonitor", str(tmp_path / "monitor"))
    assert state_of(tree.folder).dirty is False
    assert not (tmp_path / "ran").exists()


def test_the_index_is_not_written(tree):
    index = tree.folder / ".git/index"
    tree.write("train.py", "lr = 0.1\n")  # of a later time, so that git would like to refresh its index
    os.utime(tree.folder / "train.py", (1, 1))
    before = index.stat().st_mtime_ns
    # A file that was only touched has not changed.
    assert state_of(tree.folder).dirty is False
    assert index.stat().st_mtime_ns == before


# Noting


def test_commit_and_dirty_flag_are_noted(launch, tree):
    commit = tree.git("rev-parse", "HEAD")
    assert GitState.of(launch()) == GitState(commit, False)
    tree.write("train.py", "lr = 0.2\n")
    record = launch()
    assert record.world == {"commit": commit, "dirty": True}
    assert (record.app_id, record.state) == ("job-1", "SUBMITTED")


def test_a_launch_does_not_wait_for_its_note(begin, noted, runner, continued, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handle = begin("one:1")
    record = runner.journal.find(handle)
    assert (record.app_id, record.world) == ("job-0", {})
    began = time.monotonic()
    runner.close()
    assert time.monotonic() - began < PATIENCE
    continued.set()
    assert noted(handle).world == {"commit": "", "dirty": False}


def test_a_deleted_job_is_not_noted(begin, runner, continued):
    runner.job(begin("one:1")).delete()
    continued.set()
    for thread in threading.enumerate():
        if thread.name == "git-state":
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert runner.journal.records() == []


def test_notes_of_two_threads_are_merged(journal):
    record = journal.record_intent(AppDef("job", []), "local_cwd", "torchx", {})

    def note(number):
        for _ in range(5):
            journal.note(
                record, **({"world": {"commit": "abc"}} if number % 2 else {"app_id": "it", "state": "RUNNING"})
            )

    for noting in [in_background(partial(note, number)) for number in range(8)]:
        noting.result(PATIENCE)
    (kept,) = Journal(journal.folder).records()
    assert (kept.app_id, kept.state, kept.world) == ("it", "RUNNING", {"commit": "abc"})


@pytest.mark.parametrize(
    ("world", "found"),
    [
        ({}, None),
        ({"commit": 3}, None),
        ({"images": {}}, None),
        ({"commit": "abc", "dirty": "x"}, GitState("abc", None)),
        # Of earlier versions.
        ({"commit": "abc", "changes": "", "images": {"i": "sha256:1"}}, GitState("abc", False)),
        ({"commit": "abc", "changes": "1f"}, GitState("abc", True)),
        ({"commit": "abc", "changes": None}, GitState("abc", None)),
    ],
)
def test_state_of_a_record(world, found):
    assert GitState.of(LaunchRecord("1", 0.0, "local_cwd", "torchx", {}, world=world)) == found


# Comparing


def test_nothing_changes_at_once(launch, runner, scheduler, tree):
    config = {"scheduler": "local_cwd", "component.lr": "0.1"}
    record = launch(config=config)
    assert runner.changed_since(record) == runner.changed_since(record, config) == []
    tree.write("train.py", "lr = 0.2\n")
    assert runner.changed_since(launch()) == []


def test_another_commit(launch, runner, tree):
    record = launch()
    then = tree.git("rev-parse", "HEAD")[:10]
    assert runner.changed_since(record, None) == []
    assert runner.changed_since(record) == []
    now = tree.commit()[:10]
    assert runner.changed_since(record) == [Changed("git commit", then, now)]
    tree.git("checkout", "--quiet", "--detach", then)
    assert runner.changed_since(record) == []


def test_a_slow_git_is_not_compared(launch, runner, tree, hanging_git, monkeypatch):
    record = launch()
    assert record.world["commit"]
    hanging_git()
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", 0.2)
    assert runner.changed_since(record) == []


def test_uncommitted_changes(launch, runner, tree):
    clean = launch()
    tree.write("train.py", "lr = 0.2\n")
    assert runner.changed_since(clean) == [Changed("uncommitted changes", "none", "some")]
    assert runner.changed_since(replace(clean, world={})) == []
    dirty = launch()
    assert runner.changed_since(dirty) == []
    tree.git("checkout", "--quiet", "train.py")
    assert runner.changed_since(dirty) == [Changed("uncommitted changes", "some", "none")]


def test_another_folder(launch, runner, scheduler, tree, tmp_path, monkeypatch):
    record = launch()
    monkeypatch.chdir(tmp_path)
    assert runner.changed_since(record) == [
        Changed("working folder", str(tree.folder), str(tmp_path)),
        Changed("git commit", tree.git("rev-parse", "HEAD")[:10], "no git work tree here"),
    ]
    # A job that is whole in its image does not depend on the folder; git is asked where it was launched.
    monkeypatch.setattr(scheduler, "capabilities", Capabilities())
    assert runner.changed_since(record) == []


def test_another_config(launch, runner, tree):
    given = {"scheduler": "local_cwd", "log_dir": "/logs", "component.lr": "0.1"}
    record = launch(arguments={"steps": "3"}, config=given)
    # What was typed stays, whatever the config has now.
    now = {"log_dir": "/other", "component.lr": "0.1", "component.steps": "9", "component.seed": "1", "workspace": "/w"}
    changed = [
        Changed("config: seed", "-", "1"),
        Changed("config: log_dir", "/logs", "/other"),
        Changed("config: scheduler", "local_cwd", "-"),
    ]
    assert runner.changed_since(record, now) == [*changed, Changed("config: workspace", "-", "/w")]
    assert runner.changed_since(replace(record, workspace="/mine"), now) == changed


def test_many_jobs_are_compared_with_one_query(launch, runner, tree, git_calls):
    records = [launch() for _ in range(5)]
    tree.commit()
    git_calls.reset_mock()
    now = GitStates()
    assert [len(runner.changed_since(record, None, now)) for record in records] == [1] * 5
    assert [call.args[0] for call in git_calls.mock_calls] == [tree.folder]


def test_waiting_launches_share_an_answer_of_git(begin, noted, tree, git_calls, continued):
    handles = [begin("") for _ in range(6)]
    continued.set()
    assert {noted(handle).world["commit"] for handle in handles} == {tree.git("rev-parse", "HEAD")}
    assert git_calls.call_count == 2


def test_an_answer_of_git_must_be_new_enough(tmp_path, git_calls, monkeypatch):
    git_calls.side_effect = lambda *_: None
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    now = GitStates()
    for since, count in ((10.0, 1), (10.0, 1), (9.0, 1), (10.5, 2)):
        assert now.git(tmp_path, since) is None
        assert git_calls.call_count == count


def test_closing_waits_for_notes(begin, runner, tree, continued, monkeypatch):
    monkeypatch.setattr(provenance, "CLOSE_TIMEOUT_S", NEVER)
    handle = begin("one:1")
    closing = in_background(runner.close)
    wait([closing], 0.5)
    assert not closing.done()
    continued.set()
    closing.result(PATIENCE)
    assert runner.journal.find(handle).world["commit"] == tree.git("rev-parse", "HEAD")
