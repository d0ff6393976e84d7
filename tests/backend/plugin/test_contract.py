"""What every scheduler has to do, done by schedulers that are written against TorchX's classes."""

import shutil
import sys
from pathlib import Path

import pytest
from backend.contract import SchedulerContract
from support.torchx_plugins import as_if_installed

from torchx_tui.backends import registry
from torchx_tui.backends.abilities import PrunesJobs
from torchx_tui.backends.plugin.found import GUEST_GROUP
from torchx_tui.backends.plugin.remote import RemoteScheduler
from torchx_tui.backends.types import Stream
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import is_terminal


def end_all(scheduler):
    for row in scheduler.list():
        if not is_terminal(row.state):
            scheduler.cancel(row.app_id)
    scheduler.close()


class TestProcessJobs(SchedulerContract):
    """A package of others, by its entry point."""

    has_times = has_line_times = has_exit_codes = has_replica_counts = has_named_ids = False

    @pytest.fixture
    def scheduler(self, plugins, tmp_path):
        plugins.process_jobs()
        self.folder = tmp_path / "jobs"
        made = registry.create_scheduler("processes", "torchx", folder=str(self.folder))
        yield made
        end_all(made)

    @pytest.fixture
    def cfg(self):
        return {"folder": "unused"}

    def purge_log(self, scheduler, described):
        for name in ("stdout", "stderr"):
            for path in (self.folder / described.app_id).glob(f"*/*/{name}"):
                path.unlink()


class TestOwnContract(SchedulerContract):
    """A scheduler of this program's contract that asks for a process of its own."""

    @pytest.fixture
    def scheduler(self, fresh_registry, tmp_path, monkeypatch):
        with as_if_installed(tmp_path / "site", monkeypatch) as plugins:
            plugins.module(
                "acme_local",
                f"""
                from pathlib import Path
                from torchx_tui.backends.local.scheduler import LocalScheduler

                def create(session_name, **kwargs):
                    assert not kwargs, "variables of TorchX are for its schedulers"
                    return LocalScheduler(session_name, root=Path({str(tmp_path / "jobs")!r}), handle_signals=False)
                """,
            )
            plugins.distribution("acme-local", GUEST_GROUP, acme="acme_local:create")
            made = registry.create_scheduler("acme", "torchx")
            yield made
            end_all(made)

    def purge_log(self, scheduler, described):
        for folder in Path(described.log_dir).glob("*/*/"):
            shutil.rmtree(folder)

    def test_it_lives_elsewhere_and_prunes(self, scheduler):
        assert isinstance(scheduler, RemoteScheduler)
        assert isinstance(scheduler, PrunesJobs)
        assert "acme_local" not in sys.modules
        assert scheduler.prune(dryrun=True) == []
        assert [found.origin for found in registry.scheduler_plugins()[0] if found.name == "acme"] == [
            "acme_local:create of acme-local"
        ]


OWN_WAYS = """
from torchx_tui.backends.api import Scheduler
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs import AppDryRunInfo

class OwnWays(WorkspaceMixin, Scheduler):
    def _submit_dryrun(self, app, cfg):
        return AppDryRunInfo(app.name, str)

    def submit_dryrun(self, app, cfg):
        info = super().submit_dryrun(app, cfg)
        return AppDryRunInfo(info.request + " overridden", str)

    def schedule(self, info):
        return info.request.replace(" ", "-")

    def describe(self, app_id):
        return None

    def list(self, cfg=None):
        return []

    def _cancel_existing(self, app_id):
        pass

    def log_iter(self, app_id, role_name, k=0, regex=None, since=None, until=None, should_tail=False, *, streams=None):
        return iter([f"{streams!s}\\n"])

def create(session_name, **kwargs):
    return OwnWays("own", session_name)
"""


def test_a_scheduler_in_a_guest_may_override_its_dry_run(fresh_registry, tmp_path, monkeypatch):
    with as_if_installed(tmp_path / "site", monkeypatch) as plugins:
        plugins.module("acme_own", OWN_WAYS)
        plugins.distribution("acme-own", GUEST_GROUP, own="acme_own:create")
        scheduler = registry.create_scheduler("own", "torchx")
        try:
            assert scheduler.takes_workspace
            info = scheduler.submit_dryrun(AppDef("app", [Role("r", "i")]), {})
            assert str(info) == "app overridden"
            assert scheduler.schedule(info) == "app-overridden"
            assert list(scheduler.log_iter("app", "r", streams=Stream.STDERR)) == ["Stream.STDERR\n"]
        finally:
            scheduler.close()
