"""The Cluster screen by its keys: pools, nodes, filter, tabs, launch, refresh, faults."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from backend.kubernetes.samples import described, sample
from support.canned import MINUTE, NOW, CannedScheduler
from support.cluster import CannedCluster, EstimatingCluster, busy_cluster
from support.dashboard import make_app
from support.screens import Driver, Launch, jobs_of, launch_of
from support.waiting import NEVER

from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.types import ClusterNode, ClusterPool, ClusterStatus
from torchx_tui.specs.errors import BackendUnavailableError
from torchx_tui.specs.status import AppState
from torchx_tui.tui.cluster.screen import ClusterScreen, pool_of_job
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.row_table import RowTable


@pytest.fixture
def scheduler():
    return CannedCluster(busy_cluster())


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = make_app(scheduler, tmp_path, name="slurm")
    monkeypatch.setattr(made.runner, "scheduler_names", lambda: ["slurm"])
    return made


class Cluster(Driver):
    """The rows of the cluster screen."""

    @property
    def table(self) -> RowTable:
        return self.screen.query_one(RowTable)

    async def at(self, name: str) -> None:
        """Wait until the cursor is on a row."""
        await self.until(lambda: self.table.cursor_name == name, name)

    async def has(self, rows: int) -> None:
        await self.until(lambda: self.table.row_count == rows, f"{rows} rows")


async def cluster_by(driver: Driver, *keys: str) -> Cluster:
    """Open the cluster screen by keys, and wait for its rows."""
    screen = await driver.open(ClusterScreen, *keys)
    await driver.until(lambda: screen.status and screen.query_one(RowTable).row_count, "the rows")
    return Cluster(driver.pilot)


@asynccontextmanager
async def cluster_of(app):
    """Start the dashboard, and open the cluster screen."""
    async with jobs_of(app, rows=0) as jobs:
        await jobs.until(lambda: {*app.schedulers} <= {*app.jobs.made}, "the backends")
        yield await cluster_by(jobs, "C")


async def test_pools_then_nodes_and_back(app):
    async with cluster_of(app) as cluster:
        await cluster.shows("10/56 a100", "GrpTRES of the account vision: 14 of 16 GPUs in use", on="drawn")
        await cluster.press("j", "enter", shows=("7 nodes of long", "bad fan [root]"), on="drawn")
        await cluster.press("escape")
        await cluster.at("long")
        await cluster.open(JobsScreen, "escape")


async def test_filter_keeps_rows_with_all_words(app):
    async with cluster_of(app) as cluster:
        await cluster.press("slash", *"not gold", "enter")
        await cluster.has(1)
        await cluster.at("h100")
        await cluster.shows("1 of 5 partitions", on="drawn")
        await cluster.press("escape")
        await cluster.has(5)
        assert app.screen is cluster.screen


async def test_launch_goes_to_the_pool(app):
    async with cluster_of(app) as cluster:
        screen = await cluster.open(LaunchScreen, "j", "n")
        await cluster.until(lambda: screen.picker.components, "the components")
        launch = Launch(cluster.pilot)
        await launch.pick("utils.echo")
        assert (launch.model.scheduler, launch.model.plan().cfg.get("partition")) == ("slurm", "long")


@pytest.mark.parametrize(
    ("keys", "text"), [(("j", "enter"), "long"), (("n",), "gpu"), (("j", "escape"), "old"), (("G", "enter"), "old")]
)
async def test_a_field_of_the_form_takes_the_pool(app, scheduler, tmp_path, keys, text):
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slurm\n")
    scheduler.status = replace(scheduler.status, pools=[*scheduler.status.pools, ClusterPool("spare", "pool")])
    async with launch_of(app, "utils.echo") as launch:
        launch.set("msg", "typed")
        assert "ctrl+r What is free" not in launch.key_hints()
        await launch.focus("partition", "option")
        launch.set("partition", "old", "option")
        await launch.until(lambda: "ctrl+r What is free" in launch.key_hints(), "the key")
        cluster = await cluster_by(launch, "ctrl+r")
        await cluster.at("old")
        await cluster.press("g", *keys)
        if keys[0] == "G":
            await cluster.shows("spare is not a partition", on="drawn")
            await cluster.press("escape")
        await launch.back()
        await launch.until(lambda: launch.model.plan().cfg.get("partition") == text, text)
        assert (launch.value("partition", "option"), launch.at(), launch.value("msg")) == (text, "partition", "typed")


async def test_a_hostile_name_is_opened_and_estimated(tmp_path):
    name = "a\x1b[31m[red]b"
    status = ClusterStatus([ClusterPool(name, cfg={"partition": name})], [ClusterNode("n1", (name,))])
    scheduler = EstimatingCluster(status, NOW)
    async with cluster_of(make_app(scheduler, tmp_path, name="slurm")) as cluster:
        await cluster.shows("a[red]b: a job of one task would start now", on="drawn")
        assert {*scheduler.estimated} == {name}
        await cluster.press("enter", shows="1 node of a[red]b", on="drawn")


async def test_a_queue_is_chosen_at_its_backend(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = kubernetes\n")
    queues = ClusterStatus([ClusterPool("red", "queue", cfg={"queue": "red"}), ClusterPool("nodes", "pool")])
    app = make_app(
        CannedCluster(busy_cluster()), tmp_path, name="slurm", more={"kubernetes": CannedCluster(queues, "queue")}
    )
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["slurm", "kubernetes"])
    async with launch_of(app, "utils.echo") as launch:
        await launch.focus("queue", "option")
        cluster = await cluster_by(launch, "ctrl+r")
        await cluster.at("red")
        assert "slurm" not in cluster.drawn().splitlines()[1]
        await cluster.shows("1 queue, 1 pool ", on="drawn")
        await cluster.press("enter")
        await launch.until(lambda: launch.model.plan().cfg.get("queue") == "red", "the choice")


async def test_the_row_at_the_cursor_is_estimated(tmp_path, monkeypatch):
    delay = "torchx_tui.tui.cluster.screen._ESTIMATE_DELAY_S"
    scheduler = EstimatingCluster(busy_cluster(), NOW)
    async with cluster_of(make_app(scheduler, tmp_path, name="slurm")) as cluster:
        await cluster.shows("gpu: a job of one task would start in 2h 05m", on="drawn")
        monkeypatch.setattr(delay, NEVER)
        await cluster.press("j")
        monkeypatch.setattr(delay, 0.01)
        await cluster.press("j", shows="h100: a job of one task would not start: Invalid account [vision]", on="drawn")
        # Not the row that the cursor passed.
        assert {*scheduler.estimated} == {"gpu", "h100"}
        await cluster.press("j", "enter", shows="cpu: a job of one task would start now", on="drawn")


async def test_read_only_offers_no_launch(scheduler, tmp_path):
    async with cluster_of(make_app(scheduler, tmp_path, name="slurm", read_only=True)) as cluster:
        assert "n Launch here" not in cluster.key_hints()
        await cluster.press("n")
        await cluster.settled()
        assert cluster.app.screen is cluster.screen


async def test_tabs_are_the_backends_that_can_tell(tmp_path):
    other = CannedCluster(ClusterStatus([ClusterPool("red", "queue", cfg={"queue": "red"}, cpus=4, cpus_free=1)]))
    more = {"kubernetes": other, "local_cwd": CannedScheduler()}
    async with cluster_of(make_app(CannedCluster(busy_cluster()), tmp_path, name="slurm", more=more)) as cluster:
        assert "local" not in cluster.drawn().splitlines()[1]
        await cluster.press("right_square_bracket")
        await cluster.at("red")
        await cluster.shows("1 queue ", on="drawn")
        await cluster.press("left_square_bracket")
        await cluster.at("gpu")


async def test_rows_stay_when_a_backend_falls_silent(app, scheduler):
    async with cluster_of(app) as cluster:
        scheduler.error = BackendUnavailableError("slurm does not [answer]")
        await cluster.press("R", shows="! slurm does not [answer]", on="drawn")
        assert cluster.table.row_count == 5
        scheduler.error = None
        await cluster.press("R", shows="5 partitions", on="drawn")


async def test_a_backend_that_never_answered_says_why(app, scheduler):
    async with jobs_of(app, rows=0) as jobs:
        await jobs.until(lambda: app.jobs.made, "the backend")
        scheduler.error = BackendUnavailableError("no controller")
        await jobs.open(ClusterScreen, "C")
        await jobs.shows("no controller", on="drawn")


@pytest.mark.parametrize(
    ("state", "metadata", "cfg"),
    [
        (AppState.PENDING, {"partition": "h100,gpu"}, {"partition": "cpu"}),
        (AppState.SUBMITTED, {"queue": "h100"}, {}),
        (AppState.PENDING, {}, {"queue": "h100"}),
    ],
    ids=["Slurm", "Volcano", "Kueue"],
)
async def test_a_waiting_job_leads_to_its_pool(app, scheduler, state, metadata, cfg):
    scheduler.add("train-1", state, MINUTE)
    scheduler.described["train-1"].metadata.update(metadata)
    scheduler.described["train-1"].cfg.update(cfg)
    async with jobs_of(app) as jobs:
        job = await jobs.job()
        await job.shows("C what is free", on="drawn")
        await (await cluster_by(job, "C")).at("h100")


@pytest.mark.parametrize(
    ("kind", "group", "name", "pool"),
    [
        (BATCH, "kueue", "kq-waiting", "user-queue"),
        (VOLCANO, "volcano", "y-init", "default"),
        (BATCH, "plain", "suspended", ""),
    ],
)
def test_the_pool_of_a_recorded_job(kind, group, name, pool):
    assert pool_of_job(described(kind, sample(group, name))) == pool


async def test_no_key_where_no_backend_can_tell(tmp_path):
    app = make_app(CannedScheduler(), tmp_path)
    async with jobs_of(app, rows=0) as jobs:
        await jobs.until(lambda: app.jobs.made, "the backend")
        await jobs.press("C")
        await jobs.settled()
        assert app.screen is jobs.screen


async def test_it_is_asked_again_after_a_pool_was_opened_meanwhile(tmp_path, monkeypatch, hold):
    monkeypatch.setattr("torchx_tui.tui.cluster.screen._LEAST_REFRESH_S", 0.05)
    scheduler = CannedCluster(replace(busy_cluster(), refresh_s=0.05))
    async with cluster_of(make_app(scheduler, tmp_path, name="slurm")) as cluster:
        held = hold(scheduler, "cluster")
        await cluster.until(held.begun.is_set, "the question")
        await cluster.press("enter")
        await cluster.has(7)
        held.go.set()
        asked = scheduler.asked
        await cluster.until(lambda: scheduler.asked > asked + 2, "further questions")
        await cluster.press("escape", "escape")
