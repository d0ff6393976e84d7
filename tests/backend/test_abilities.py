"""The abilities of each scheduler; the contract tests skip those that a scheduler lacks."""

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.backends import abilities, registry

ALL = {name: one for name, one in vars(abilities).items() if getattr(one, "_is_runtime_protocol", False)}
COMMON = "ChecksBackend ChecksNames ChecksLaunches DescribesNatively RunsCommands"
ABILITIES = {
    "local_cwd": f"{COMMON} DescribesCluster MeasuresUsage OwnsJobs PrunesJobs KeepsLogFiles",
    "local_docker": f"{COMMON} DescribesCluster WatchesChanges MeasuresUsage OpensShell StreamsLogs",
    "kubernetes": f"{COMMON} DescribesCluster KnowsValues WatchesChanges MeasuresUsage OpensShell HasActions"
    " StreamsLogs",
    "slurm": f"{COMMON} KnowsValues SuggestsPartitions DescribesCluster EstimatesStarts"
    " SuggestsAlternatives ListsAllUsers MeasuresUsage OpensShell HasActions KeepsLogFiles",
}
FACTORIES = {
    name: factory for name, factory in registry.get_scheduler_factories().items() if isinstance(factory, partial)
}


@pytest.mark.parametrize("name", FACTORIES)
def test_each_scheduler_has_its_abilities(name):
    with closing(FACTORIES[name]("torchx")) as scheduler:
        found = {ability for ability, protocol in ALL.items() if isinstance(scheduler, protocol)}
    assert found == {*ABILITIES[name].split()}


def test_each_scheduler_is_packed_and_in_the_import_contracts():
    project = toml_table(Path(__file__).parents[2] / "pyproject.toml")
    packages = {factory.args[0].split(".")[1] for factory in FACTORIES.values()} | {"plugin"}
    names = {f"torchx_tui.backends.{package}" for package in packages}
    assert names <= set(project["tool"]["setuptools"]["packages"])
    contracts = [
        str(one) for one in project["tool"]["importlinter"]["contracts"] if "torchx_tui.backends.slurm" in str(one)
    ]
    assert len(contracts) > 1
    assert [contract for contract in contracts if not all(f"'{name}'" in contract for name in names)] == []
