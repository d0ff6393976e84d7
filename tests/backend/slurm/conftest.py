"""The scheduler slurm over programs that stand for Slurm's commands, and on a cluster of the module's own."""

import pytest
from support.services import NoServiceError
from support.slurm_clock import Clock
from support.slurm_cluster import OwnSlurm, private_slurm
from support.slurm_commands import SlurmCommands

from torchx_tui.backends.slurm.scheduler import SlurmScheduler


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Give programs in the place of Slurm's commands, of its newest version."""
    return SlurmCommands(tmp_path / "slurm", monkeypatch)


@pytest.fixture
def slurm(commands):
    """Give a scheduler that asks these programs anew each time, however long they take."""
    made = SlurmScheduler("torchx", interval=0, quick_interval=0)
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch):
    """Give a clock in the place of the shared answers' own."""
    return Clock(monkeypatch)


@pytest.fixture(scope="module")
def module_cluster():
    """Give a cluster of the module's own with limits, priorities and a licence, or why there is none."""
    # A node that answers late on a busy machine is not taken for one that failed, which would queue its jobs again.
    settings = (
        "AccountingStorageEnforce=limits,qos\nPriorityType=priority/multifactor\nLicenses=matlab:1\n"
        "MinJobAge=20\nSlurmdTimeout=3600\n"
    )
    try:
        with private_slurm(settings) as cluster:
            yield cluster
    except NoServiceError as error:
        yield error


@pytest.fixture
def cluster(
    module_cluster,
    require,
    monkeypatch,
    tmp_path,
):
    """Give the module's cluster, with all that runs; SLURM_CONF is set to it, and the folder is a new one."""
    require("slurm", isinstance(module_cluster, OwnSlurm), str(module_cluster))
    assert isinstance(module_cluster, OwnSlurm)
    module_cluster.start()
    monkeypatch.setenv("SLURM_CONF", module_cluster.settings)
    monkeypatch.chdir(tmp_path)
    return module_cluster


@pytest.fixture
def real(cluster):
    """Give a scheduler on the module's cluster that may ask often."""
    made = SlurmScheduler("torchx", interval=0.5, quick_interval=0.2)
    yield made
    made.close()
