"""Which schedulers there are, and in which contexts they are asked."""

import json

import pytest
from support.canned import CannedScheduler

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.specs import (
    AppDef,
    AppState,
    Resource,
    Role,
    UnknownSchedulerException,
    in_context,
    parse_app_handle,
    split_context,
)

EKS = "arn:aws:eks:us-west-2:1234:cluster/train"


class InContext(CannedScheduler):
    """A scheduler that takes a context."""

    def __init__(self, context=""):
        super().__init__()
        self.context = context

    def schedule(self, dryrun_info):
        self.add("default:sh-1", AppState.RUNNING, 1.0)
        return "default:sh-1"


def write_kubeconfig(path, *contexts, current=""):
    """Write a kubeconfig of servers that do not exist."""
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": current or contexts[0],
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [
                    {"name": name, "context": {"cluster": "c", "user": "u", "namespace": f"{name[:4]}-space"}}
                    for name in contexts
                ],
            }
        )
    )
    return path


@pytest.mark.parametrize("context", ["prod", EKS, "user@cluster"])
def test_a_handle_names_its_context(context):
    name = in_context("kubernetes", context)
    handle = f"{name}://torchx/default:sh-x4dfk2"
    parsed = parse_app_handle(handle)
    assert split_context(parsed.scheduler_backend) == ("kubernetes", context)
    assert parsed.app_id == "default:sh-x4dfk2"
    assert in_context(name, "") == "kubernetes"


def test_each_context_is_a_scheduler_of_its_own():
    pool = SchedulerPool("torchx", contexts={"kubernetes": ("prod", EKS)})
    # What TorchX has beyond ours follows, where it is installed.
    assert pool.names()[:4] == ["local_docker", "local_cwd", "kubernetes@prod", f"kubernetes@{EKS}"]
    assert SchedulerPool("torchx", contexts={"kubernetes": ()}).names()[2] == "kubernetes"


def test_nobody_hears_of_a_scheduler_that_is_not_set_up(tmp_path, monkeypatch):
    pool = SchedulerPool("torchx")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert "kubernetes" not in pool.watched()
    write_kubeconfig(tmp_path / "some", "prod")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}:{tmp_path / 'some'}")
    assert "kubernetes" in pool.watched()


def test_a_scheduler_is_asked_in_its_context(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "config", "prod", "staging", current="staging")))
    pool = SchedulerPool("torchx", {"kubernetes": {"timeout": 1.0}})
    assert pool.get("kubernetes").context == "staging"
    assert pool.get("kubernetes@prod").context == "prod"
    default = pool.get("kubernetes@prod").run_opts().get("namespace")
    assert default is not None
    assert default.default == "prod-space"
    # The run option leads to the scheduler of its context, and to none of its own where it names the same.
    assert pool.at("kubernetes", {"context": "prod"}) == "kubernetes@prod"
    assert pool.at("kubernetes", {"context": "staging"}) == "kubernetes"
    assert pool.at("kubernetes@prod", {}) == "kubernetes@prod"
    assert pool.at("kubernetes@prod", {"context": "staging"}) == "kubernetes@staging"
    pool.close()


def test_an_unknown_scheduler_in_a_context():
    with pytest.raises(UnknownSchedulerException):
        SchedulerPool("torchx").get("nosuch@prod")


def test_what_is_launched_in_a_context_is_kept_and_found_there(tmp_path):
    from torchx_tui.backends.history.journal import Journal

    here, there = InContext(), InContext("prod")
    schedulers = {"kubernetes": here, "kubernetes@prod": there}
    runner = Runner(journal=Journal(tmp_path / "journal"), schedulers=schedulers)
    app = AppDef("sh", [Role("sh", "", entrypoint="sh", resource=Resource(cpu=1, gpu=0, memMB=1))])
    handle = runner.run(app, "kubernetes@prod", {})
    assert handle.startswith("kubernetes@prod://torchx/")
    record = runner.journal.find(handle)
    assert record is not None
    assert record.scheduler == "kubernetes@prod"
    again = runner.relaunch(handle)
    assert again.startswith("kubernetes@prod://")
    assert [row.app_handle for row in runner.list("kubernetes@prod")] == [handle]
    assert runner.list("kubernetes") == []
    # The job itself hears the name that TorchX gives it.
    info = runner.dryrun(app, "kubernetes@prod", {})
    assert info.app.roles[0].env["TORCHX_JOB_ID"].startswith("kubernetes://torchx/")
