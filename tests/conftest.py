"""Every test has a home of its own; nothing of the person's who runs it is read or written. Real services, by name."""

import gc
import itertools
import os
import re
import signal
import sys
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.docker_engine import private_engine, shared_engine
from support.kubernetes_cluster import delete_namespace, new_namespace, private_cluster, shared_cluster
from support.oracle_counts import OracleCounts
from support.services import NoServiceError
from support.slurm_cluster import shared_slurm
from support.times import Times

# What is compiled is kept, here and in every program that a test starts, also where the environment says otherwise: a
# start of the dashboard would compile 150 files each time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What it asserts shows its values, as in a test's own file.
pytest.register_assert_rewrite("backend.contract")

# No deadlines: how long an example takes depends on how busy the machine is.
settings.register_profile(
    "any machine",
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")


def pytest_addoption(parser):
    """Add what `make test ARGS=...` takes beside pytest's own options."""
    parser.addoption("--changed", action="store_true", help="only the tests of what differs from main")
    parser.addoption("--times", action="store_true", help="show the seconds of each folder")


def pytest_collection_finish():
    """Leave what was collected out of each later search for garbage: it stays to the end, and is large."""
    gc.freeze()


def pytest_configure(config):
    """Tell at the end how many cases were held against TorchX, and what took how long where that is asked for."""
    config.pluginmanager.register(OracleCounts(), "oracle counts")
    if config.getoption("--changed"):
        from support.changed import Changed

        config.pluginmanager.register(Changed(), "changed")
    if config.getoption("--times"):
        config.pluginmanager.register(Times(), "times")


_SERVICES = {
    "docker_engine",
    "own_engine",
    "engine_of_module",
    "kubernetes_cluster",
    "own_cluster",
    "cluster_of_module",
    "slurm_cluster",
    "cluster",
}
# Tests with these fixtures wait for programs most of their time.
_WAITING = {*_SERVICES, "terminal", "home"}


def pytest_collection_modifyitems(items):
    """Let each of xdist's workers, which get equal parts of the list, begin with tests that wait.

    At the end of the list one of them would keep a single worker busy while the processors have nothing to do.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    kinds = ([], [])
    for item in items:
        if not _SERVICES.isdisjoint(item.fixturenames):
            item.add_marker("services")
        kinds[_WAITING.isdisjoint(item.fixturenames)].append(item)
    bounds = [[len(kind) * worker // workers for worker in range(workers + 1)] for kind in kinds]
    items[:] = [
        item
        for worker in range(workers)
        for kind, bound in zip(kinds, bounds, strict=True)
        for item in kind[bound[worker] : bound[worker + 1]]
    ]


@pytest.fixture(scope="session", autouse=True)
def usual_signals():
    """Take signals as a program in a terminal does: under nohup, or in a shell's background, they are ignored."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """Give an empty folder of the test's own, as pytest does, which lists the folders of all tests for each new one."""
    return _new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


def _new_folder(factory, name):
    folder = factory.getbasetemp() / f"{name}{next(_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """Point the XDG folders and HOME at an empty folder, and take away what would change the screens."""
    home = _new_folder(tmp_path_factory, "home")
    monkeypatch.setenv("HOME", str(home))
    for variable, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(home / folder))
    for variable in ("NO_COLOR", "TORCHX_TUI_CONFIG", "TORCHXCONFIG", "SSH_CONNECTION", "TMUX", "COLUMNS", "LINES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    # The Python that runs components is that of an active environment.
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    # No engine, no cluster and no plugin, unless a test asks for one.
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", "0")
    monkeypatch.setenv("SLURM_CONF", f"{home}/no-slurm.conf")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{home}/no-docker.sock")
    monkeypatch.setenv("KUBECONFIG", f"{home}/no-kubeconfig")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return home


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Let the summary have one line for all tests that miss the same service, not one for each place."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and " is missing: " in report.longrepr[2]:
        report.longrepr = ("tests", None, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def require():
    """Skip where something is missing, or fail where REQUIRE_SERVICES says that it must be there."""

    def require_service(name: str, present: bool, how: str) -> None:
        if present:
            return
        if name in os.environ.get("REQUIRE_SERVICES", "").split(","):
            pytest.fail(f"{name} is required here and missing: {how}")
        pytest.skip(f"{name} is missing: {how}")

    return require_service


def running(require, name, find):
    """Return the service that a function finds; skip where there is none, or fail where it must be there."""
    found: Any = None
    reason = ""
    try:
        found = find()
    except NoServiceError as error:
        reason = str(error)
    require(name, found is not None, reason)
    return found


@pytest.fixture
def docker_engine(own_home, require, monkeypatch):
    """Give DOCKER_HOST of a real engine that other tests use as well, set in the environment.

    It has the images busybox:local and python:local. A test removes what it made there.
    """
    host = running(require, "docker", shared_engine)
    _choose_engine(monkeypatch, host)
    return host


@pytest.fixture(scope="module")
def engine_of_module(require):
    """Give a started `OwnEngine`; `own_engine` is what tests use."""
    with ExitStack() as stack:
        yield running(require, "docker", lambda: stack.enter_context(private_engine()))


@pytest.fixture
def own_engine(own_home, engine_of_module, monkeypatch):
    """Give a started `OwnEngine` with the image busybox:local, which the test may stop and kill; DOCKER_HOST is set.

    The tests of a file use one after the other; each finds it without containers.
    """
    # What the test before has stopped or killed, and left.
    engine_of_module.start()
    engine_of_module.remove_containers()
    _choose_engine(monkeypatch, engine_of_module.host)
    return engine_of_module


def _choose_engine(monkeypatch, host):
    for variable in ("DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("DOCKER_HOST", host)


@pytest.fixture(scope="session")
def used_namespaces():
    """Give a list for kubeconfigs and namespaces, which are deleted at the end."""
    used = []
    yield used
    for kubeconfig, namespace in used:
        delete_namespace(kubeconfig, namespace)


@pytest.fixture
def kubernetes_cluster(own_home, require, monkeypatch, used_namespaces):
    """Give a `KubernetesCluster` with a namespace of the test's own, in which pods run; KUBECONFIG is set to it.

    It has the images busybox:local and python:local, a node, and what stands in for Volcano.
    """
    kubeconfig = running(require, "kubernetes", shared_cluster)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    with new_namespace(kubeconfig) as cluster:
        used_namespaces.append((kubeconfig, cluster.namespace))
        yield cluster


@pytest.fixture(scope="module")
def cluster_of_module(require):
    """Give a started `OwnCluster`; `own_cluster` is what tests use."""
    with ExitStack() as stack:
        yield running(require, "kubernetes", lambda: stack.enter_context(private_cluster()))


@pytest.fixture
def own_cluster(own_home, cluster_of_module, monkeypatch):
    """Give a started `OwnCluster`, which the test may kill and compact; KUBECONFIG is set to it.

    The tests of a file use one after the other, each with a new namespace.
    """
    cluster_of_module.start()
    cluster_of_module.make_namespace()
    monkeypatch.setenv("KUBECONFIG", cluster_of_module.kubeconfig)
    return cluster_of_module


@pytest.fixture
def slurm_cluster(own_home, require, monkeypatch, tmp_path):
    """Give SLURM_CONF of a real cluster that other tests use as well, set in the environment.

    The working folder is a new one: TorchX looks for logs there.
    """
    settings = running(require, "slurm", shared_slurm)
    monkeypatch.setenv("SLURM_CONF", settings)
    monkeypatch.chdir(tmp_path)
    return settings
