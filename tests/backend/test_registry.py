"""Which schedulers there are, and that none is imported before it is used."""

import math
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from torchx_tui.backends import registry
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs.errors import BackendUnavailableError, UnknownSchedulerException


@pytest.fixture
def plugins(monkeypatch):
    def install(**points):
        made = [EntryPoint(name, value, registry.GROUP) for name, value in points.items()]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: made if group == registry.GROUP else [])
        registry._plugins.cache_clear()

    yield install
    registry._plugins.cache_clear()


def test_order_and_default():
    names = list(registry.get_scheduler_factories())
    known = ["local_docker", "local_cwd", "kubernetes", "slurm"]
    assert names[: len(known)] == known
    assert registry.get_default_scheduler_name() == names[0]


def test_a_scheduler_is_made_with_its_arguments(tmp_path):
    made = registry.create_scheduler("local_cwd", "mine", root=tmp_path, handle_signals=False, cache_size="5")
    assert isinstance(made, LocalScheduler)
    assert made.session_name == "mine"
    made.close()


@pytest.mark.parametrize("name", ["local_docker", "local_cwd", "kubernetes", "slurm"])
def test_a_factory_ignores_the_arguments_of_others(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    everything = {"cache_size": 5, "extra_paths": [], "docker_client": None, "session_lifetime": 3}
    made = registry.create_scheduler(name, "mine", **everything)
    assert made.session_name == "mine"
    made.close()


def test_impossible_arguments_are_errors():
    with pytest.raises(ValueError, match="cache_size must be greater than zero, not 0"):
        LocalScheduler("mine", cache_size=0)
    with pytest.raises(ValueError, match="grace_seconds must be a number from 0 on, not nan"):
        LocalScheduler("mine", grace_seconds=math.nan)


def test_an_unknown_name():
    with pytest.raises(UnknownSchedulerException, match=r"no scheduler nowhere.*local_cwd"):
        registry.create_scheduler("nowhere", "s")


def test_plugins_come_last_and_replace_nothing(plugins):
    plugins(mine="builtins:dict", local_cwd="builtins:list", broken="no_such_module:x")
    names = list(registry.get_scheduler_factories())
    assert names[-2:] == ["mine", "broken"]
    assert names.count("local_cwd") == 1
    factory = registry.get_scheduler_factories()["mine"]
    with pytest.raises(ValueError):
        factory("no mapping")
    with pytest.raises(BackendUnavailableError, match="the scheduler broken cannot be loaded: No module named"):
        registry.create_scheduler("broken", "s")


def test_nothing_is_imported_before_it_is_used():
    program = (
        "import sys; import torchx_tui.backends.registry as registry, torchx_tui.backends.api; "
        "registry.get_scheduler_factories(); "
        "print([name for name in sys.modules if name.startswith('torchx_tui.backends.local') "
        "or name in ('yaml', 'psutil', 'fsspec', 'docker', 'kubernetes')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
