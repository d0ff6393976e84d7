"""Every optional method of the contract crosses to a plugin's process and back."""

import os
import signal
import threading
from pathlib import Path

import pytest
from support.torchx_plugins import as_if_installed
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends import registry
from torchx_tui.backends.abilities import ABILITIES, DescribesNatively, StreamsLogs
from torchx_tui.backends.api import Scheduler
from torchx_tui.backends.plugin.found import GUEST_GROUP
from torchx_tui.backends.plugin.wire import METHODS
from torchx_tui.backends.shared.bounded_command import CommandOutput
from torchx_tui.backends.types import (
    Alternative,
    ClusterNode,
    ClusterStatus,
    Finding,
    JobAction,
    NameFault,
    PartitionStatus,
    ReplicaUsage,
    StartEstimate,
    Stream,
    pool_of,
)
from torchx_tui.specs.errors import JobNotFoundError, NotAllowedError
from torchx_tui.specs.roles import AppDef, Role

ABLE = """
import os, pathlib
from torchx_tui.backends.api import *
from torchx_tui.backends.shared.bounded_command import CommandOutput
from torchx_tui.backends.types import *
from torchx_tui.specs import AppDryRunInfo, AppState
from torchx_tui.specs.errors import JobNotFoundError, NotAllowedError

CHANGES = pathlib.Path(__file__).parent / "changes"

class Able(Scheduler):
    runs_once_per_node = True
    all_users = False
    did = ""

    def _submit_dryrun(self, app, cfg):
        return AppDryRunInfo(app.name, str)

    def schedule(self, info):
        return info.request

    def describe(self, app_id):
        return None

    def list(self, cfg=None):
        rows = [ListAppResponse(f"of-{'all' if self.all_users else 'one'}-{os.getpid()}", AppState.RUNNING)]
        return [*rows, ListAppResponse("odd", AppState.RUNNING, limit_at="soon")]

    def _cancel_existing(self, app_id):
        pass

    def set_all_users(self, all_users):
        self.all_users = all_users

    def missing_jobs(self):
        return "a partition is down"

    def known_values(self):
        return {"queue": ["fast", "slow"]}

    def actions(self, app_id):
        if app_id != "job-1":
            raise JobNotFoundError(app_id, self.backend)
        return [JobAction("hold", "Hold the job.", value="3 h", ends_job=True)]

    def act(self, app_id, action, value=""):
        if action != "hold":
            raise NotAllowedError(f"{action} is for administrators")
        self.did = f"{action} {app_id} {value}"

    def partitions(self, app, cfg):
        return [PartitionStatus({"queue": app.roles[0].image}, "fast", free=1, nodes=2, start=3.5)]

    def cluster(self):
        gpus = {"h200": (1, 8)}
        return ClusterStatus([pool_of("fast", [ClusterNode("n1", ("fast",), gpus=gpus)], cfg={"queue": "fast"})])

    def estimate_start(self, pool):
        return StartEstimate(7.0 if pool == "fast" else None, "full")

    def alternatives(self, app_id):
        return [Alternative({"queue": "slow"}, 7.0), Alternative({}, None, "never fits")]

    def usage(self, app_id):
        return [ReplicaUsage("r", 1, cpu=0.5, memory=7)]

    def shell_command(self, app_id, role_name, k):
        return ["sh", "-c", f"{app_id} {role_name} {k}"]

    def run_beside(self, app_id, role_name, k, argv, timeout_s=20.0):
        return CommandOutput(k, b"\\xff" + " ".join(argv).encode(), str(timeout_s).encode())

    def log_files(self, app_id, role_name, k):
        return {Stream.STDERR: pathlib.Path("/logs", app_id, role_name, str(k))}

    def check(self):
        return [Finding("ok", self.did)]

    def preflight(self, app, cfg):
        return [Finding("warning", f"{app.name} {cfg['queue']}", "hint")]

    def check_names(self, app, cfg):
        return [NameFault("", app.name, "too short", "use three letters", refused=False)]

    def own_app_ids(self):
        return ["job-1"]

    def detach(self, app_id):
        pass

    def end_own(self):
        pass

    def prune(self, *, dryrun=False):
        return [str(dryrun)]

    def subscribe(self, on_change):
        import threading
        ended = threading.Event()
        def watch():
            while not ended.wait(0.02):
                if CHANGES.exists():
                    CHANGES.unlink()
                    on_change()
            CHANGES.with_name("ended").touch()
        threading.Thread(target=watch, daemon=True).start()
        return ended.set

def create(session_name, **kwargs):
    return Able("able", session_name)
"""

APP = AppDef("a", [Role("r", "image")])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "site"


@pytest.fixture
def able(fresh_registry, folder, monkeypatch):
    with as_if_installed(folder, monkeypatch) as plugins:
        plugins.module("acme_able", ABLE)
        plugins.distribution("acme-able", GUEST_GROUP, able="acme_able:create")
        made = registry.create_scheduler("able", "torchx")
        yield made
        made.close()


def test_answers_cross(able):
    assert able.known_values() == {"queue": ["fast", "slow"]}
    assert able.missing_jobs() == "a partition is down"
    assert able.actions("job-1") == [JobAction("hold", "Hold the job.", value="3 h", ends_job=True)]
    assert able.partitions(APP, {}) == [PartitionStatus({"queue": "image"}, "fast", free=1, nodes=2, start=3.5)]
    node = ClusterNode("n1", ("fast",), gpus={"h200": (1, 8)})
    assert able.cluster() == ClusterStatus([pool_of("fast", [node], cfg={"queue": "fast"})], [], [], [])
    assert able.estimate_start("slow") == StartEstimate(None, "full")
    assert able.alternatives("job-1") == [Alternative({"queue": "slow"}, 7.0), Alternative({}, None, "never fits")]
    assert able.usage("job-1") == [ReplicaUsage("r", 1, cpu=0.5, memory=7)]
    assert able.shell_command("job-1", "r", 2) == ["sh", "-c", "job-1 r 2"]
    assert able.run_beside("job-1", "r", 2, ["a", "b"], timeout_s=5.0) == CommandOutput(2, b"\xffa b", b"5.0")
    assert able.log_files("job-1", "r", 2) == {Stream.STDERR: Path("/logs/job-1/r/2")}
    assert able.preflight(APP, {"queue": "fast"}) == [Finding("warning", "a fast", "hint")]
    assert able.check_names(APP, {}) == [NameFault("", "a", "too short", "use three letters", refused=False)]
    assert (able.own_app_ids(), able.prune(dryrun=True)) == (["job-1"], ["True"])


def test_action_is_done_in_the_plugin(able):
    able.act("job-1", "hold", "3 h")
    assert able.check() == [Finding("ok", "hold job-1 3 h")]
    with pytest.raises(NotAllowedError, match="drain is for administrators"):
        able.act("job-1", "drain")
    with pytest.raises(JobNotFoundError):
        able.actions("job-2")


def test_plugin_has_the_abilities_that_it_defines(able):
    assert {ability for ability in ABILITIES if not isinstance(able, ability)} == {DescribesNatively, StreamsLogs}
    assert able.runs_once_per_node
    assert not able.exists("job-1")


def test_invalid_row_costs_only_itself(able):
    assert [row.app_id.rpartition("-")[0] for row in able.list()] == ["of-one"]


def test_jobs_of_all_users_stay_chosen_after_a_restart(able):
    able.set_all_users(True)
    (row,) = able.list()
    name, _, pid = row.app_id.rpartition("-")
    os.kill(int(pid), signal.SIGKILL)

    def restarted():
        try:
            return next(again.app_id for again in able.list() if again.app_id != row.app_id)
        except Exception:
            return ""

    assert (name, wait_until(restarted, "a new process").rpartition("-")[0]) == ("of-all", "of-all")


def test_changes_are_reported_until_unsubscribed(able, folder):
    changed = threading.Event()
    unsubscribe = able.subscribe(changed.set)
    (folder / "changes").touch()
    assert changed.wait(PATIENCE)
    unsubscribe()
    wait_until((folder / "ended").exists, "the end of the plugin's subscription")


def test_table_has_every_public_method_of_the_contract():
    # These are made of others here; a dry run and a launch are calls of their own.
    local = {"submit", "submit_dryrun", "schedule", "log_stream"}
    contract = [item for part in (Scheduler, *ABILITIES) for item in vars(part).items()]
    public = {name for name, value in contract if callable(value) and not name.startswith("_")}
    assert public - local <= set(METHODS)
