"""Pictures of what Kubernetes brings: contexts as backends, why a job is stuck, ports, what options can be."""

import pytest
from support.canned import MINUTE, CannedScheduler, busy_scheduler
from support.dashboard import make_app
from support.pictures import SIZES
from support.screens import form_of, table_of

from torchx_tui.backends.api import DescribeAppResponse, PublishedPort
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus

STUCK = "team-llm:mixtral-8x7b-pt-x2r5jqbnw0tqcls"
NO_ROOM = (
    "cannot be scheduled: 0/41 nodes are available: 33 Insufficient nvidia.com/gpu, 8 node(s) had untolerated taint"
)


def cluster() -> CannedScheduler:
    """Return a scheduler with a job that does not fit and others."""
    made = CannedScheduler()
    made.add(STUCK, AppState.PENDING, 1 * MINUTE, replicas=8, running=0, why=f"{NO_ROOM}: trainer/2 and 5 more")
    for number, state in enumerate((AppState.RUNNING, AppState.SUCCEEDED, AppState.CANCELLED)):
        made.add(f"team-llm:eval-mmlu-{number}x7k2m9q4wzd", state, (7 + 5 * number) * MINUTE, replicas=4)
    replicas = [
        ReplicaStatus(
            number,
            AppState.RUNNING if number < 2 else AppState.PENDING,
            "trainer",
            f"mixtral-8x7b-pt-x2r5jqbnw0tqcls-trainer-{number}-0",
            hostaddr=f"10.244.3.{17 + number}" if number < 2 else None,
            node="gpu-a-07" if number < 2 else "",
            reason="" if number < 2 else NO_ROOM,
        )
        for number in range(8)
    ]
    role = Role("trainer", "registry.example/llm/train:2026.11", entrypoint="torchrun", args=["train.py"],
                num_replicas=8, resource=Resource(cpu=16, gpu=8, memMB=262144))  # fmt: skip
    made.described[STUCK] = DescribeAppResponse(
        app_id=STUCK, state=AppState.PENDING, msg=f"{NO_ROOM}: trainer/2 and 5 more",
        roles_statuses=[RoleStatus("trainer", replicas)], roles=[role], name="mixtral-8x7b-pt",
        metadata={"namespace": "team-llm", "queue": "research"},
        submitted_at=made.apps[STUCK].submitted_at,
        ports=[PublishedPort("trainer", 0, "tensorboard", 6006, "", 6006,
                             "kubectl --context prod --namespace team-llm port-forward pod/mixtral-8x7b-pt 6006:6006")],
    )  # fmt: skip
    return made


@pytest.fixture
def app(tmp_path):
    staging = CannedScheduler()
    staging.add("default:smoke-k2m9q4wzd", AppState.RUNNING, 3 * MINUTE, replicas=2)
    more = {"kubernetes@prod": cluster(), "kubernetes@staging": staging}
    return make_app(busy_scheduler(tmp_path / "logs"), tmp_path, more=more)


async def at_stuck(pilot):
    table = await table_of(pilot, 22 + 4 + 1)
    table.to(STUCK)
    return table


def test_contexts_and_what_is_stuck(snap_compare, app):
    async def with_logs(pilot):
        table = await at_stuck(pilot)
        await table.shows("its log cannot be read", on="drawn")

    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=with_logs)


def test_job_that_is_stuck(snap_compare, app):
    async def opened(pilot):
        table = await at_stuck(pilot)
        await table.settled()
        await table.job()

    assert snap_compare(app, sizes=SIZES, run_before=opened)


def test_kinds_of_jobs(snap_compare, tmp_path):
    made = CannedScheduler()
    kinds = {"llama3-sft-x2r5jqbnw0tqcl": "Volcano job", "job:eval-mmlu": "Job", "jobset:sweep-lr": "JobSet",
             "cronjob:nightly": "CronJob", "pytorchjob:bert-large": "PyTorchJob"}  # fmt: skip
    for number, (name, kind) in enumerate(kinds.items()):
        app_id = f"team-llm:{name}"
        made.add(app_id, list(AppState)[2 + number], (3 + 8 * number) * MINUTE, replicas=1 + number)
        made.apps[app_id].kind = kind

    async def shown(pilot):
        table = await table_of(pilot, 22 + len(kinds))
        await table.press("/", *"kind:job", "enter")
        await table.has(len(kinds))
        await table.settled()

    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, more={"kubernetes": made})
    assert snap_compare(app, sizes={"200x50": (200, 50), **SIZES}, run_before=shown)


def test_what_options_can_be(snap_compare, app, monkeypatch):
    known = {"queue": ["default", "research", "research-low"], "namespace": ["default", "team-llm"]}
    from torchx_tui.backends.kubernetes.request import KubernetesOpts

    for name in app.schedulers:
        scheduler = app.runner.scheduler(name)
        monkeypatch.setattr(scheduler, "known_values", lambda: known, raising=False)
        monkeypatch.setattr(scheduler, "_run_opts", KubernetesOpts.as_runopts)

    async def filled(pilot):
        await at_stuck(pilot)
        launch = await form_of(pilot, "demo.train")
        await launch.settled()
        launch.row("queue", "option").input.focus()
        await pilot.press("r")

    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=filled)
