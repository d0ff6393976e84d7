"""The abilities of each scheduler; the contract tests skip those that a scheduler lacks."""

from __future__ import annotations

import pytest

from torchx_tui.backends import abilities
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.backends.slurm.scheduler import SlurmScheduler

ALL = {name: one for name, one in vars(abilities).items() if getattr(one, "_is_runtime_protocol", False)}
COMMON = "ChecksBackend ChecksNames ChecksLaunches DescribesNatively RunsCommands"


@pytest.mark.parametrize(
    ("scheduler", "others"),
    [
        (LocalScheduler, "MeasuresUsage OwnsJobs PrunesJobs KeepsLogFiles"),
        (DockerScheduler, "WatchesChanges MeasuresUsage OpensShell StreamsLogs"),
        (KubernetesScheduler, "KnowsValues WatchesChanges OpensShell StreamsLogs"),
        (
            SlurmScheduler,
            "KnowsValues SuggestsPartitions SuggestsAlternatives ListsAllUsers MeasuresUsage OpensShell HasActions"
            " KeepsLogFiles",
        ),
    ],
)
def test_each_scheduler_has_its_abilities(scheduler, others):
    made = scheduler.__new__(scheduler)
    assert {name for name, ability in ALL.items() if isinstance(made, ability)} == {*f"{COMMON} {others}".split()}
