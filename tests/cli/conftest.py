import pytest
from support.command import command_runner
from support.launching_scheduler import LaunchingScheduler
from support.waiting import NEVER

from torchx_tui.backends.plugin import remote
from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.doctor import checks
from torchx_tui.guest import worker
from torchx_tui.guest.settings import use_guest_settings


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Return what runs a command of the shell in this process, in a folder of the test's own.

    What is slow on a busy machine is not taken for something that hangs; tests of that set limits of their own.
    """
    monkeypatch.chdir(tmp_path)
    for module, limit in ((remote, "LOAD_SECONDS"), (checks, "PATIENCE_SECONDS"), (worker, "START_TIMEOUT_S")):
        monkeypatch.setattr(module, limit, NEVER)
    with use_guest_settings(timeout_s=NEVER, slow_s=NEVER):
        yield command_runner(capsys, monkeypatch)


@pytest.fixture
def user_config(own_home):
    """Return the path of the user's config.toml, in a folder that is there."""
    path = own_home / "config" / "torchx-tui" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def scheduler(monkeypatch):
    """Give the scheduler that commands use as local_cwd."""
    made = LaunchingScheduler()
    before = SchedulerPool.get
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: made if name == "local_cwd" else before(self, name))
    return made
