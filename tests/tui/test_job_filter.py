"""The filter of the job table."""

import time
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.specs.status import AppState
from torchx_tui.tui.jobs.filter import FilterError, JobView, parse_filter
from torchx_tui.tui.rows import JobRow

TABLES = toml_table(Path(__file__).with_name("job_filter.toml"))

ROWS = [
    JobRow(
        "local_cwd://torchx/llama-a",
        "local_cwd",
        "llama-a",
        AppState.FAILED,
        why="exit 1",
        component="x.torchrun",
        arguments="--lr=0.3",
        submitted_at=time.time() - 7200,
    ),
    JobRow(
        "local_cwd://torchx/bert-b",
        "local_cwd",
        "bert-b",
        AppState.RUNNING,
        component="utils.sh",
        user="alice",
        image="img:1",
        submitted_at=time.time() - 8 * 86400,
    ),
    JobRow("kubernetes://torchx/llama-c", "kubernetes", "llama-c", AppState.SUCCEEDED, group="sweep-1"),
]


@pytest.mark.parametrize(("text", "shown"), TABLES["filters"])
def test_filter(text, shown):
    test = parse_filter(text)
    assert [row.app_id for row in ROWS if test(row)] == shown


@pytest.mark.parametrize(("text", "words"), TABLES["refused"])
def test_what_cannot_be_a_filter_is_said(text, words):
    with pytest.raises(FilterError, match=words):
        parse_filter(text)


OTHERS = [
    JobRow("slurm://torchx/1", "slurm", "mine", AppState.RUNNING, user="alice"),
    JobRow("slurm://torchx/2", "slurm", "script", AppState.RUNNING, user="alice", foreign=True),
    JobRow("slurm://torchx/3", "slurm", "bobs", AppState.RUNNING, user="bob", foreign=True),
    JobRow("docker://torchx/4", "docker", "past", AppState.FAILED, history=True),
]


@pytest.mark.parametrize(
    ("view", "shown", "words"),
    [
        (JobView(), "mine", []),
        (JobView(torchx_only=False), "mine script bobs", ["not only TorchX's"]),
        (JobView(everybody=True), "mine script bobs", ["everybody's"]),
        (JobView(everybody=True, user="bob"), "bobs", ["only bob's"]),
        (JobView(history=True), "mine past", ["with history"]),
        (JobView(history=True, backend="docker"), "past", ["with history"]),
        (JobView(history=True, backend="docker", filter="mine"), "", ["with history"]),
        (JobView(torchx_only=False, filter="!bobs"), "mine script", ["not only TorchX's"]),
    ],
)
def test_a_view_has_some_of_the_jobs_and_says_which(view, shown, words):
    assert " ".join(row.app_id for row in OTHERS if view.has(row)) == shown
    assert view.words == words
