"""The Cluster screen by its keys: pools, nodes, filter, tabs, launch, refresh, faults."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from backend.kubernetes.samples import described, sample
from support.canned import MINUTE, NOW, CannedScheduler
from support.cluster import CannedCluster, EstimatingCluster, busy_cluster
from support.dashboard import key_bar, make_app, screen_text, until
from support.launching import form_of, model_of, row_of
from support.waiting import NEVER, PATIENCE

from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.types import ClusterNode, ClusterPool, ClusterStatus
from torchx_tui.specs.errors import BackendUnavailableError
from torchx_tui.specs.status import AppState
from torchx_tui.tui.cluster.screen import ClusterScreen, pool_of_job
from torchx_tui.tui.job.screen import JobScreen
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


async def opened(pilot, app) -> ClusterScreen:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.made and app.jobs.answered, "the jobs")
    await pilot.press("C")
    await until(pilot, lambda: isinstance(app.screen, ClusterScreen) and app.screen.status, "the cluster")
    await until(pilot, lambda: table(app).row_count, "the rows")
    return app.screen


def table(app) -> RowTable:
    return app.screen.query_one(RowTable)


async def test_pools_then_nodes_and_back(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        drawn = screen_text(app)
        assert "10/56 a100" in drawn
        assert "GrpTRES of the account vision: 14 of 16 GPUs in use" in drawn
        await pilot.press("j", "enter")
        await until(pilot, lambda: "7 nodes of long" in screen_text(app), "the nodes")
        assert "bad fan [root]" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: table(app).cursor_name == "long", "the pool")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")


async def test_filter_keeps_rows_with_all_words(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await pilot.press("slash", *"not gold", "enter")
        await until(pilot, lambda: table(app).row_count == 1, "one row")
        assert (table(app).cursor_name, "1 of 5 partitions" in screen_text(app)) == ("h100", True)
        await pilot.press("escape")
        await until(pilot, lambda: table(app).row_count == 5, "all rows")
        assert isinstance(app.screen, ClusterScreen)


async def test_launch_goes_to_the_pool(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await pilot.press("j", "n")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.chooser.picker.components)
        screen = app.screen
        screen.chooser.picker.search.value = "utils.echo"
        await until(pilot, lambda: (found := screen.chooser.picker.highlighted) and found.name == "utils.echo")
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows, "the form")
        model = screen.editor.model
        assert (model.scheduler, model.plan().cfg.get("partition")) == ("slurm", "long")


@pytest.mark.parametrize(
    ("keys", "text"), [(("j", "enter"), "long"), (("n",), "gpu"), (("j", "escape"), "old"), (("G", "enter"), "old")]
)
async def test_a_field_of_the_form_takes_the_pool(app, scheduler, tmp_path, keys, text):
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = slurm\n")
    scheduler.status = replace(scheduler.status, pools=[*scheduler.status.pools, ClusterPool("spare", "pool")])
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        row_of(screen, "msg").input.value = "typed"
        assert "ctrl+r What is free" not in key_bar(app)
        row = row_of(screen, "partition", "option")
        row.input.focus()
        row.input.value = "old"
        await until(pilot, lambda: "ctrl+r What is free" in key_bar(app), "the key")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, ClusterScreen) and app.screen.status, "the cluster")
        await until(pilot, lambda: table(app).cursor_name == "old", "the partition of the field")
        await pilot.press("g", *keys)
        if keys[0] == "G":
            await until(pilot, lambda: "spare is not a partition" in screen_text(app), "the refusal")
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "the form")
        await until(pilot, lambda: model_of(screen).plan().cfg.get("partition") == text, text)
        assert (row.input.value, row.input.has_focus, row_of(screen, "msg").input.value) == (text, True, "typed")


async def test_a_hostile_name_is_opened_and_estimated(tmp_path):
    name = "a\x1b[31m[red]b"
    status = ClusterStatus([ClusterPool(name, cfg={"partition": name})], [ClusterNode("n1", (name,))])
    scheduler = EstimatingCluster(status, NOW)
    app = make_app(scheduler, tmp_path, name="slurm")
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: "a[red]b: a job of one task would start now" in screen_text(app), "the estimate")
        assert {*scheduler.estimated} == {name}
        await pilot.press("enter")
        await until(pilot, lambda: "1 node of a[red]b" in screen_text(app), "its node")


async def test_a_queue_is_chosen_at_its_backend(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".torchxconfig").write_text("[cli:run]\nscheduler = kubernetes\n")
    queues = ClusterStatus([ClusterPool("red", "queue", cfg={"queue": "red"}), ClusterPool("nodes", "pool")])
    app = make_app(
        CannedCluster(busy_cluster()), tmp_path, name="slurm", more={"kubernetes": CannedCluster(queues, "queue")}
    )
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["slurm", "kubernetes"])
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        row_of(screen, "queue", "option").input.focus()
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, ClusterScreen) and app.screen.status, "the cluster")
        await until(pilot, lambda: table(app).cursor_name == "red", "the queue")
        assert "slurm" not in screen_text(app).splitlines()[1]
        assert "1 queue, 1 pool " in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: model_of(screen).plan().cfg.get("queue") == "red", "the choice")


async def test_the_row_at_the_cursor_is_estimated(tmp_path, monkeypatch):
    delay = "torchx_tui.tui.cluster.screen._ESTIMATE_DELAY_S"
    scheduler = EstimatingCluster(busy_cluster(), NOW)
    app = make_app(scheduler, tmp_path, name="slurm")
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: "gpu: a job of one task would start in 2h 05m" in screen_text(app), "the estimate")
        monkeypatch.setattr(delay, NEVER)
        await pilot.press("j")
        monkeypatch.setattr(delay, 0.01)
        await pilot.press("j")
        refusal = "h100: a job of one task would not start: Invalid account [vision]"
        await until(pilot, lambda: refusal in screen_text(app), "the refusal")
        # Not the row that the cursor passed.
        assert {*scheduler.estimated} == {"gpu", "h100"}
        await pilot.press("j", "enter")
        await until(pilot, lambda: "cpu: a job of one task would start now" in screen_text(app), "the opened one")


async def test_read_only_offers_no_launch(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path, name="slurm", read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        assert "n Launch here" not in key_bar(app)
        await pilot.press("n")
        await pilot.pause()
        assert isinstance(app.screen, ClusterScreen)


async def test_tabs_are_the_backends_that_can_tell(tmp_path):
    other = CannedCluster(ClusterStatus([ClusterPool("red", "queue", cfg={"queue": "red"}, cpus=4, cpus_free=1)]))
    more = {"kubernetes": other, "local_cwd": CannedScheduler()}
    app = make_app(CannedCluster(busy_cluster()), tmp_path, name="slurm", more=more)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: len(app.jobs.made) == 3, "the backends")
        await opened(pilot, app)
        assert "local" not in screen_text(app).splitlines()[1]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: table(app).cursor_name == "red", "the queue")
        assert "1 queue " in screen_text(app)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: table(app).cursor_name == "gpu", "the partition")


async def test_rows_stay_when_a_backend_falls_silent(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        scheduler.error = BackendUnavailableError("slurm does not [answer]")
        await pilot.press("R")
        await until(pilot, lambda: "! slurm does not [answer]" in screen_text(app), "the error")
        assert table(app).row_count == 5
        scheduler.error = None
        await pilot.press("R")
        await until(pilot, lambda: "5 partitions" in screen_text(app), "the answer")


async def test_a_backend_that_never_answered_says_why(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.jobs.made and app.jobs.answered, "the jobs")
        scheduler.error = BackendUnavailableError("no controller")
        await pilot.press("C")
        await until(pilot, lambda: isinstance(app.screen, ClusterScreen) and "no controller" in screen_text(app))


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
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == 1, "the job")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.described is not None, "the job")
        await until(pilot, lambda: "C what is free" in screen_text(app), "the key")
        await pilot.press("C")
        await until(pilot, lambda: isinstance(app.screen, ClusterScreen) and app.screen.status, "the cluster")
        await until(pilot, lambda: table(app).cursor_name == "h100", "its partition")


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
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.jobs.made and app.jobs.answered, "the jobs")
        await pilot.press("C")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)


async def test_it_is_asked_again_after_a_pool_was_opened_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr("torchx_tui.tui.cluster.screen._LEAST_REFRESH_S", 0.05)
    goes_on, is_asked = threading.Event(), threading.Event()
    scheduler = CannedCluster(replace(busy_cluster(), refresh_s=0.05))
    answer = scheduler.cluster

    def cluster() -> ClusterStatus:
        is_asked.set()
        assert goes_on.wait(PATIENCE)
        return answer()

    app = make_app(scheduler, tmp_path, name="slurm")
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        monkeypatch.setattr(scheduler, "cluster", cluster)
        await until(pilot, is_asked.is_set, "the question")
        await pilot.press("enter")
        await until(pilot, lambda: table(app).row_count == 7, "the nodes")
        goes_on.set()
        asked = scheduler.asked
        await until(pilot, lambda: scheduler.asked > asked + 2, "further questions")
        await pilot.press("escape", "escape")
