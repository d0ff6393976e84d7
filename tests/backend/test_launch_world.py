"""What is noted beside a launch, and what of it has changed when it is launched again."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.git import WorkTree
from support.imaged import Imaged
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.api import Capabilities
from torchx_tui.backends.history import provenance
from torchx_tui.backends.history.journal import Journal, LaunchRecord
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.history.provenance import Changed, GitState, LaunchWorld, WorldNow, differing_files, git_state
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, Role, SchedulerError


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkTree:
    made = WorkTree(tmp_path / "project")
    monkeypatch.chdir(made.folder)
    return made


@pytest.fixture
def scheduler() -> Imaged:
    return Imaged()


@pytest.fixture
def runner(tmp_path: Path, scheduler: Imaged) -> Runner:
    return Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": scheduler})


def launch(runner: Runner, **origin: Any) -> LaunchRecord:
    """Launch an app of two images, and return its record once the world is noted."""
    app = AppDef("job", [Role(name, image, entrypoint="true") for name, image in (("a", "one:1"), ("b", "two:1"))])
    handle = runner.run(app, "local_cwd", {}, origin=LaunchOrigin("jobs.py:job", **origin))
    return noted(runner, handle)


def noted(runner: Runner, handle: str) -> LaunchRecord:
    def world() -> LaunchRecord | None:
        record = runner.journal.find(handle)
        return record if record is not None and record.world else None

    record = wait_until(world, "the note")
    assert record is not None
    return record


# Git


def test_a_work_tree_with_and_without_changes(tree: WorkTree) -> None:
    clean = git_state(tree.folder, 30)
    assert clean is not None
    assert (clean.commit, clean.changes) == (tree.git("rev-parse", "HEAD"), "")
    (tree.folder / "below").mkdir()
    assert git_state(tree.folder / "below", 30) == clean
    tree.write("untracked.txt", "x")
    assert git_state(tree.folder, 30) == clean
    tree.write("train.py", "lr = 0.2\n")
    changed = git_state(tree.folder, 30)
    tree.write("train.py", "lr = 0.3\n")
    other = git_state(tree.folder, 30)
    assert changed is not None
    assert other is not None
    assert len({clean.changes, changed.changes, other.changes}) == 3
    assert differing_files(tree.folder, clean.commit, 30) == 1
    # Git may be told to print names as they are, which need not be text.
    tree.git("config", "core.quotePath", "false")
    (tree.folder / os.fsdecode(b"\xff.py")).write_text("x")
    tree.git("add", "--all")
    assert differing_files(tree.folder, clean.commit, 30) == 3


def test_where_there_is_no_git(tmp_path: Path, tree: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    assert git_state(tmp_path, 30) is None
    assert git_state(tmp_path / "gone", 30) is None
    assert differing_files(tree.folder, "0" * 40, 30) is None
    (tmp_path / "empty").mkdir()
    tree.git("init", "--quiet", str(tmp_path / "empty"))
    assert git_state(tmp_path / "empty", 30) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tree.folder, 30) is None


def test_a_git_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    began = time.monotonic()
    assert git_state(tmp_path, 0.2) == GitState("", None)
    assert time.monotonic() - began < PATIENCE


def test_the_index_is_not_written(tree: WorkTree) -> None:
    index = tree.folder / ".git" / "index"
    tree.write("train.py", "lr = 0.1\n")  # of a later time, so that git would like to refresh its index
    os.utime(tree.folder / "train.py", (1, 1))
    before = index.stat().st_mtime_ns
    state = git_state(tree.folder, 30)
    assert index.stat().st_mtime_ns == before
    # A file that was only touched is as it was.
    assert state is not None
    assert state.changes == ""
    assert differing_files(tree.folder, state.commit, 30) == 0


# Noting


def test_commit_and_images_are_noted_beside_the_launch(runner: Runner, scheduler: Imaged, tree: WorkTree) -> None:
    scheduler.digests = {"one:1": "sha256:old"}
    record = launch(runner)
    world = LaunchWorld.of(record)
    # The images are looked at once the launch has pulled them.
    assert world == LaunchWorld(tree.git("rev-parse", "HEAD"), "", {"one:1": "sha256:new"})
    assert (record.app_id, record.state) == ("job-0", "SUBMITTED")
    assert scheduler.asked == [["one:1", "two:1"]]


def test_images_are_not_looked_at_before_they_were_pulled(runner: Runner, scheduler: Imaged, tree: WorkTree) -> None:
    asked = threading.Event()
    too_early: list[bool] = []
    scheduler.on_asked = asked.set
    # Half a second is enough for who does not wait for the launch.
    scheduler.on_schedule = lambda: too_early.append(asked.wait(0.5))
    launch(runner)
    assert asked.is_set()
    assert too_early == [False]


def test_a_launch_waits_neither_for_git_nor_for_the_backend(
    runner: Runner, scheduler: Imaged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = threading.Event()

    def slow(*_: Any) -> None:
        going_on.wait(PATIENCE)

    monkeypatch.setattr("torchx_tui.backends.history.provenance.git_state", slow)
    scheduler.waits = going_on
    handle = runner.run(AppDef("job", [Role("r", "one:1", entrypoint="true")]), "local_cwd", {})
    record = runner.journal.find(handle)
    assert record is not None
    assert (record.app_id, record.world) == ("job-0", {})
    began = time.monotonic()
    runner._launcher.close()
    assert time.monotonic() - began < PATIENCE
    going_on.set()
    assert noted(runner, handle).world == {"commit": "", "changes": "", "images": {}}


def test_a_job_that_was_deleted_meanwhile_stays_so(
    runner: Runner, scheduler: Imaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on = threading.Event()
    scheduler.waits = going_on
    handle = runner.run(AppDef("job", [Role("r", "one:1", entrypoint="true")]), "local_cwd", {})
    runner.delete(handle)
    going_on.set()
    for thread in runner._launcher._worlds._threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert runner.journal.records() == []


def test_a_backend_that_cannot_tell_costs_nothing(runner: Runner, scheduler: Imaged, tree: WorkTree) -> None:
    scheduler.failure = SchedulerError("away")
    world = LaunchWorld.of(launch(runner))
    assert world is not None
    assert (bool(world.commit), world.images) == (True, {})


def test_two_threads_that_note_something_of_one_launch_both_do(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    record = journal.record_intent(AppDef("job", []), "local_cwd", "torchx", {})
    names = [f"image-{number}" for number in range(20)]

    def note(number: int) -> None:
        for _ in range(5):
            if number % 2:
                journal.note(record, world={"commit": names[number]})
            else:
                journal.note(record, app_id="the-id", state="RUNNING")

    threads = [threading.Thread(target=note, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    (kept,) = Journal(tmp_path).records()
    assert (kept.app_id, kept.state) == ("the-id", "RUNNING")
    assert kept.world["commit"] in names


def test_what_was_forgotten_is_not_brought_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    record = journal.record_intent(AppDef("job", []), "local_cwd", "torchx", {})
    journal.forget(record)
    journal.note(record, state="RUNNING")
    assert journal.records() == []
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("world", [{}, {"commit": 3}, {"images": {}}, {"commit": None}])
def test_a_world_that_says_nothing_is_none(tmp_path: Path, world: dict[str, Any]) -> None:
    record = LaunchRecord("1", 0.0, "local_cwd", "torchx", {}, world=world)
    assert LaunchWorld.of(record) is None
    odd = replace(record, world={"commit": "abc", "changes": 3, "images": "x"})
    assert LaunchWorld.of(odd) == LaunchWorld("abc", None, {})


# Comparing


def test_nothing_has_changed_at_once(runner: Runner, scheduler: Imaged, tree: WorkTree) -> None:
    scheduler.digests = {"one:1": "sha256:new"}
    record = launch(runner, config={"scheduler": "local_cwd", "component.lr": "0.1"})
    assert runner.changed_since(record) == []
    assert runner.changed_since(record, {"scheduler": "local_cwd", "component.lr": "0.1"}) == []
    tree.write("train.py", "lr = 0.2\n")
    dirty = launch(runner)
    assert runner.changed_since(dirty) == []


def test_a_commit_later(runner: Runner, tree: WorkTree) -> None:
    record = launch(runner)
    then = tree.git("rev-parse", "HEAD")[:10]
    tree.write("train.py", "lr = 0.2\n")
    tree.write("eval.py", "")
    now = tree.commit()[:10]
    assert runner.changed_since(record) == [Changed("git commit", then, f"{now}, 2 files differ")]
    tree.git("checkout", "--quiet", "--detach", then)
    assert runner.changed_since(record) == []


def test_nothing_is_said_of_a_commit_that_git_does_not_tell_in_time(
    runner: Runner, tree: WorkTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = launch(runner)
    assert record.world["commit"]
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", 0.2)
    assert runner.changed_since(record) == []


def test_changes_that_were_not_committed(runner: Runner, tree: WorkTree) -> None:
    clean = launch(runner)
    tree.write("train.py", "lr = 0.2\n")
    assert runner.changed_since(clean) == [Changed("uncommitted changes", "none", "some, 1 file differs")]
    dirty = launch(runner)
    tree.write("train.py", "lr = 0.3\n")
    assert runner.changed_since(dirty) == [Changed("uncommitted changes", "some", "others, 1 file differs")]
    tree.git("checkout", "--quiet", "train.py")
    assert runner.changed_since(dirty) == [Changed("uncommitted changes", "some", "none")]


def test_images(runner: Runner, scheduler: Imaged, tree: WorkTree) -> None:
    scheduler.digests = {"one:1": "sha256:" + "a" * 64, "two:1": "sha256:" + "b" * 64}
    record = launch(runner)
    scheduler.digests = {"one:1": "sha256:" + "c" * 64}
    assert runner.changed_since(record) == [
        Changed("image one:1", "sha256:" + "a" * 12, "sha256:" + "c" * 12),
        Changed("image two:1", "sha256:" + "b" * 12, "not here"),
    ]


def test_another_folder(runner: Runner, scheduler: Imaged, tree: WorkTree, tmp_path: Path, monkeypatch: Any) -> None:
    record = launch(runner)
    monkeypatch.chdir(tmp_path)
    assert runner.changed_since(record) == [
        Changed("working folder", str(tree.folder), str(tmp_path)),
        Changed("git commit", tree.git("rev-parse", "HEAD")[:10], "no git work tree here"),
    ]
    # Where an image has all that a job needs, the folder does not matter, and git is asked where it was launched.
    monkeypatch.setattr(scheduler, "capabilities", Capabilities())
    assert runner.changed_since(record) == []


def test_config(runner: Runner, tree: WorkTree) -> None:
    given = {"scheduler": "local_cwd", "log_dir": "/logs", "component.lr": "0.1"}
    record = launch(runner, arguments={"steps": "3"}, config=given)
    now = {"log_dir": "/other", "component.lr": "0.1", "component.steps": "9", "component.seed": "1"}
    # What a person had typed stays as it was typed, whatever config says today.
    assert runner.changed_since(record, now) == [
        Changed("config: seed", "-", "1"),
        Changed("config: log_dir", "/logs", "/other"),
        Changed("config: scheduler", "local_cwd", "-"),
    ]
    assert runner.changed_since(record, None) == []


def test_of_a_launch_of_which_nothing_is_known_nothing_is_said(runner: Runner, tree: WorkTree) -> None:
    record = replace(launch(runner), world={})
    tree.write("train.py", "lr = 0.2\n")
    assert runner.changed_since(record) == []


def test_many_jobs_are_compared_with_one_look(
    runner: Runner, scheduler: Imaged, tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.digests = {"one:1": "sha256:new"}
    records = [launch(runner) for _ in range(5)]
    tree.commit()
    calls: list[Path] = []
    scheduler.asked = []

    def counted(folder: Path, patience: float) -> Any:
        calls.append(folder)
        return git_state(folder, patience)

    monkeypatch.setattr("torchx_tui.backends.history.provenance.git_state", counted)
    now = WorldNow()
    assert [len(runner.changed_since(record, None, now)) for record in records] == [1] * 5
    assert calls == [tree.folder]
    assert scheduler.asked == [["one:1"]]


def test_launches_that_wait_for_git_take_one_answer(
    runner: Runner, scheduler: Imaged, tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, calls = threading.Event(), []

    def slow(folder: Path, patience: float) -> Any:
        calls.append(folder)
        going_on.wait(PATIENCE)
        return git_state(folder, patience)

    monkeypatch.setattr("torchx_tui.backends.history.provenance.git_state", slow)
    app = AppDef("job", [Role("r", "", entrypoint="true")])
    handles = [runner.run(app, "local_cwd", {}) for _ in range(6)]
    going_on.set()
    commits = {noted(runner, handle).world["commit"] for handle in handles}
    assert commits == {tree.git("rev-parse", "HEAD")}
    assert len(calls) == 2


def test_an_answer_is_good_enough_from_the_time_on_at_which_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    monkeypatch.setattr("torchx_tui.backends.history.provenance.git_state", lambda folder, _: calls.append(folder))
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    now = WorldNow()
    for since, count in ((10.0, 1), (10.0, 1), (9.0, 1), (10.5, 2)):
        assert now.git(tmp_path, since) is None
        assert len(calls) == count


def test_a_workspace_that_a_person_chose_stays(runner: Runner, tree: WorkTree) -> None:
    record = launch(runner, config={"scheduler": "local_cwd"})
    now = {"scheduler": "local_cwd", "workspace": "/other"}
    assert runner.changed_since(record, now) == [Changed("config: workspace", "-", "/other")]
    assert runner.changed_since(replace(record, workspace="/mine"), now) == []


def test_one_file_differs_in_words(runner: Runner, tree: WorkTree) -> None:
    record = launch(runner)
    tree.commit()
    (changed,) = runner.changed_since(record)
    assert changed.now == tree.git("rev-parse", "HEAD")[:10]


def test_the_end_of_a_program_waits_for_all_that_is_to_be_noted(
    runner: Runner, scheduler: Imaged, tree: WorkTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchx_tui.backends.history.provenance.CLOSE_TIMEOUT_S", NEVER)
    scheduler.waits = threading.Event()
    handles = [
        runner.run(AppDef("job", [Role("r", image, entrypoint="true")]), "local_cwd", {}) for image in ("one:1", "")
    ]
    closing = threading.Thread(target=runner.close)
    closing.start()
    noted(runner, handles[1])
    # The first launch's images are still asked for.
    closing.join(0.5)
    assert closing.is_alive()
    scheduler.waits.set()
    closing.join(PATIENCE)
    for handle in handles:
        record = runner.journal.find(handle)
        assert record is not None
        assert record.world["commit"] == tree.git("rev-parse", "HEAD")
