"""Which schedulers there are, and in which contexts they are asked."""

import json

import pytest
from backend.tables import TABLES
from support.canned import CannedScheduler

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.specs.errors import UnknownSchedulerException
from torchx_tui.specs.handles import in_context, parse_app_handle, split_context
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

EKS = "arn:aws:eks:us-west-2:1234:cluster/train"


class InContext(CannedScheduler):
    """A scheduler that takes a context."""

    def __init__(self, context=""):
        super().__init__()
        self.context = context

    def schedule(self, dryrun_info):
        self.add("default:sh-1", AppState.RUNNING, 1.0)
        return "default:sh-1"


@pytest.fixture
def kubeconfig(tmp_path, monkeypatch):
    """Write a kubeconfig of servers that do not exist; the second context is the current one."""
    config = TABLES["scheduler_pool"]["kubeconfig"]
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{tmp_path}/config")


@pytest.mark.parametrize("context", ["prod", EKS, "user@cluster"])
def test_a_handle_names_its_context(context):
    name = in_context("kubernetes", context)
    parsed = parse_app_handle(f"{name}://torchx/default:sh-x4dfk2")
    assert split_context(parsed.scheduler_backend) == ("kubernetes", context)
    assert parsed.app_id == "default:sh-x4dfk2"
    assert in_context(name, "") == "kubernetes"


def test_each_context_is_a_scheduler():
    pool = SchedulerPool("torchx", contexts={"kubernetes": ("prod", EKS)})
    # Schedulers that TorchX has beyond ours follow, where it is installed.
    assert pool.names()[:4] == ["local_docker", "local_cwd", "kubernetes@prod", f"kubernetes@{EKS}"]
    pool = SchedulerPool("torchx", contexts={"kubernetes": ()})
    assert pool.names()[2] == "kubernetes"
    # There is no kubeconfig.
    assert "kubernetes" not in pool.watched()
    with pytest.raises(UnknownSchedulerException):
        pool.get("nosuch@prod")


def test_a_scheduler_is_asked_in_its_context(kubeconfig):
    pool = SchedulerPool("torchx", {"kubernetes": {"timeout": 1.0}})
    assert "kubernetes" in pool.watched()
    prod = pool.get("kubernetes@prod")
    assert (pool.get("kubernetes").context, prod.context) == ("staging", "prod")
    assert dict(prod.run_opts())["namespace"].default == "prod-space"
    # The run option chooses the scheduler of its context.
    for name, cfg, chosen in (
        ("kubernetes", {"context": "prod"}, "kubernetes@prod"),
        ("kubernetes", {"context": "staging"}, "kubernetes"),
        ("kubernetes@prod", {}, "kubernetes@prod"),
        ("kubernetes@prod", {"context": "staging"}, "kubernetes@staging"),
    ):
        assert pool.resolve_context(name, cfg) == chosen
    pool.close()


def test_a_launch_stays_in_its_context(journal):
    schedulers = {"kubernetes": InContext(), "kubernetes@prod": InContext("prod")}
    runner = Runner(journal=journal, schedulers=schedulers)
    app = AppDef("sh", [Role("sh", "", entrypoint="sh", resource=Resource(cpu=1, gpu=0, memMB=1))])
    handle = runner.run(app, "kubernetes@prod", {})
    assert handle.startswith("kubernetes@prod://torchx/")
    assert journal.find(handle).scheduler == "kubernetes@prod"
    assert runner.relaunch(handle).startswith("kubernetes@prod://")
    assert [row.app_handle for row in runner.list("kubernetes@prod")] == [handle]
    assert runner.list("kubernetes") == []
    # The job itself has the name that TorchX gives it.
    info = runner.dryrun(app, "kubernetes@prod", {})
    assert info.request.roles[0].env["TORCHX_JOB_ID"].startswith("kubernetes://torchx/")
