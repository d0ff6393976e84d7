"""Rows of jobs: what a backend listed, completed by the journal, and what the screens keep of all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.backends.types import ListAppResponse
from torchx_tui.specs.status import AppState
from torchx_tui.tui.messages import JobsChanged
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.watch.make_rows import arguments_text, history_rows, row_of
from torchx_tui.tui.watch.store import JobStore

RECORD = LaunchRecord(
    "9", 5.0, "slurm", "torchx", {"name": "train"}, component="dist.ddp", arguments={"lr": "0.1"}, user="alice",
    group="sweep-1",
)  # fmt: skip
LISTED = ListAppResponse(
    "7", AppState.RUNNING, "slurm://torchx/7", submitted_at=10.0, started_at=20.0, replicas_running=3,
    replicas_wanted=4, replicas_succeeded=1, user="bob", image="img:1", msg="waits", notes=["unsupervised"],
    limit_at=90.0, foreign=True, after=["5", "6"],
)  # fmt: skip


def test_row_joins_backend_and_journal():
    assert row_of(LISTED, RECORD) == JobRow(
        "slurm://torchx/7", "slurm", "7", AppState.RUNNING, running=3, wanted=4, submitted_at=10.0, started_at=20.0,
        component="dist.ddp", arguments="--lr 0.1", why="waits", user="bob", image="img:1", notes=("unsupervised",),
        foreign=True, group="sweep-1", called="train", limit_at=90.0,
        after=("slurm://torchx/5", "slurm://torchx/6"),
    )  # fmt: skip
    ended = replace(LISTED, state=AppState.FAILED, finished_at=30.0, submitted_at=None, user="", name="named")
    row = row_of(ended, RECORD)
    # Of a job that has ended, those count that went well.
    assert (row.running, row.finished_at, row.submitted_at, row.user, row.called) == (1, 30.0, 5.0, "alice", "named")
    row = row_of(ended, None)
    assert (row.component, row.arguments, row.user, row.group, row.submitted_at) == ("", "", "", "", None)
    assert row_of(replace(LISTED, name=""), None).called == ""
    # An id that is more than a number tells enough.
    assert row_of(replace(LISTED, app_id="train-7", app_handle="slurm://torchx/train-7"), RECORD).called == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, ""),
        ({"lr": 0.1, "name": "a b"}, "--lr 0.1 --name 'a b'"),
        ({"args": ["train.py", "--steps", 7]}, "train.py --steps 7"),
        ({"api_token": "abc"}, "--api_token '********'"),
        ({"args": ("--password", "abc")}, "--password '********'"),
    ],
)
def test_arguments_are_shown_as_a_person_types_them(arguments, text):
    assert arguments_text(replace(RECORD, arguments=arguments)) == text


@pytest.mark.parametrize(
    ("arguments", "swept", "text"),
    [
        ("--lr 0.1 --name 'a b' --fp16=true", (), "lr=0.1 name=a b fp16=true"),
        ("train.py --steps 7 --amp", (), "train.py steps=7 amp=yes"),
        ("--lr 0.1 --steps 7", (("lr", "0.1"),), "lr=0.1"),
        ("--broken 'quote", (), "broken='quote"),
    ],
)
def test_row_names_what_distinguishes_it(arguments, swept, text):
    row = JobRow("local_cwd://torchx/a", "local_cwd", "a", AppState.RUNNING, arguments=arguments, swept=swept)
    assert row.varied == text


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (40, "lr=0.1 batch-size=32"),
        (19, "lr=0.1 batch-=32"),
        (14, "lr=0.1 batc=32"),
        (12, "lr=0.1 ba=32"),
        (9, "0.1 32"),
    ],
)
def test_names_of_arguments_are_shortened(width, text):
    swept = (("lr", "0.1"), ("batch-size", "32"))
    row = JobRow("local_cwd://torchx/a", "local_cwd", "a", AppState.RUNNING, swept=swept)
    assert row.fit_varied(width) == text


def test_arguments_outside_of_a_sweep_keep_their_names():
    row = JobRow("local_cwd://torchx/a", "local_cwd", "a", AppState.RUNNING, arguments="--lr 0.1 --batch-size 32")
    assert row.fit_varied(12) == "lr=0.1 ba=32"
    assert row.fit_varied(9) == "lr=0.1 batch-size=32"


def past(**fields: Any) -> JobRow:
    (row,) = history_rows([replace(RECORD, **fields)], frozenset())
    return row


def test_a_launch_of_the_past_tells_what_was_last_seen_of_it():
    roles = [{"num_replicas": 3}, {}]
    row = past(app_id="7", state="FAILED", state_at=30.0, message="exit 1", app={"roles": roles})
    assert row == JobRow(
        "slurm://torchx/7", "slurm", "7", AppState.FAILED, wanted=4, submitted_at=5.0, finished_at=30.0,
        component="dist.ddp", arguments="--lr 0.1", why="exit 1", user="alice", group="sweep-1", history=True,
    )  # fmt: skip
    going_on = past(app_id="7", state="RUNNING")
    assert (going_on.state, going_on.why, going_on.finished_at) == (AppState.RUNNING, "last seen at its launch", None)
    assert past(app_id="7", state="RUNNING", state_at=30.0).finished_at is None
    assert past(app_id="7", state="odd", state_at=30.0, message="x").why == "x"
    # One that never got an id has a name of its own.
    assert (past().handle, past(app={}).handle) == ("slurm://torchx/train-9", "slurm://torchx/-9")
    assert past().state is AppState.UNKNOWN
    assert history_rows([RECORD], {"slurm://torchx/train-9"}) == []


def test_a_launch_that_cannot_be_shown_costs_its_own_row_alone():
    bad: Any = replace(RECORD, id="8", app={"roles": 5})
    found = history_rows([bad, RECORD, bad, replace(RECORD, id="7")], frozenset())
    assert [each.handle for each in found] == ["slurm://torchx/train-9", "slurm://torchx/train-7"]


def row(name: str, state: AppState, scheduler: str = "slurm", **fields: Any) -> JobRow:
    return JobRow(f"{scheduler}://torchx/{name}", scheduler, name, state, **fields)


def changed(*rows: JobRow, removed: tuple[str, ...] = ()) -> JobsChanged:
    return JobsChanged(rows[0].scheduler if rows else "slurm", {each.handle: each for each in rows}, set(removed))


def test_jobs_are_counted_as_they_come_change_and_go():
    jobs = JobStore()
    one, other = row("1", AppState.RUNNING), row("2", AppState.PENDING)
    elsewhere = row("3", AppState.RUNNING, "local_cwd")
    assert jobs.apply(changed(one, other)) == []
    jobs.add(elsewhere)
    jobs.add(replace(elsewhere, state=AppState.FAILED))
    assert (jobs.count(), jobs.count("slurm"), jobs.count("local_cwd"), jobs.count("none")) == (3, 2, 1, 0)
    assert jobs.state_counts()[AppState.RUNNING] == 2
    assert jobs.state_counts("slurm") == {AppState.RUNNING: 1, AppState.PENDING: 1}
    ended = replace(one, state=AppState.FAILED, finished_at=9.0)
    assert jobs.apply(changed(ended)) == [ended]
    assert jobs.apply(changed(ended)) == []
    # One that had ended before it was first seen is no news.
    assert jobs.apply(changed(row("4", AppState.FAILED))) == []
    assert +jobs.state_counts("slurm") == {AppState.FAILED: 2, AppState.PENDING: 1}
    jobs.apply(changed(removed=(one.handle, "slurm://torchx/9")))
    jobs.forget(other.handle)
    assert jobs.changes(one.handle) == jobs.changes(other.handle) == []
    assert (list(jobs.rows), jobs.count("slurm")) == ([elsewhere.handle, "slurm://torchx/4"], 1)


def test_the_states_of_a_job_are_kept_with_when_they_began():
    jobs = JobStore()
    assert jobs.changes("slurm://torchx/1") == []
    waits = row("1", AppState.PENDING, submitted_at=10.0)
    jobs.add(waits)
    assert jobs.changes(waits.handle) == [(AppState.PENDING, 10.0)]
    began = time.time()
    jobs.apply(changed(replace(waits, state=AppState.RUNNING, running=1, started_at=15.0)))
    jobs.apply(changed(replace(waits, state=AppState.FAILED, started_at=15.0, finished_at=20.0)))
    states = jobs.changes(waits.handle)
    assert [state for state, _ in states] == [AppState.PENDING, AppState.RUNNING, AppState.FAILED]
    # That it runs was seen here; its end is told by its backend.
    assert (states[0][1], states[2][1]) == (10.0, 20.0)
    assert began <= states[1][1] <= time.time()
    for _ in range(60):
        for state in (AppState.RUNNING, AppState.PENDING):
            jobs.apply(changed(replace(waits, state=state)))
    assert len(jobs.changes(waits.handle)) == 100
    # One of which nothing changed while we looked.
    runs = row("2", AppState.RUNNING, running=1, submitted_at=1.0, started_at=2.0)
    ended = row("3", AppState.FAILED, submitted_at=1.0, started_at=2.0, finished_at=3.0)
    jobs.apply(changed(runs, ended))
    assert [jobs.changes(each.handle)[0][1] for each in (runs, ended)] == [2.0, 3.0]


@pytest.mark.parametrize(
    ("error", "why"),
    [("", "launch interrupted: the job may have been submitted"), ("the disk is full", "the disk is full")],
)
def test_past_launch_without_a_job_says_why(error, why):
    (row,) = history_rows([replace(RECORD, app_id="", state="", message="", error=error)], frozenset())
    assert (row.state, row.why) == (AppState.UNKNOWN, why)
