"""Pictures of what backends like Docker bring: long launches, ports, usage, several backends, results of many."""

from dataclasses import replace

from support.canned import MINUTE, NOW, CannedScheduler, busy_scheduler
from support.dashboard import make_app, until
from support.pictures import RUNNING, SIZES, at_job
from support.screens import table_of

from torchx_tui.backends.api import PublishedPort, ReplicaUsage
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.dialogs import results_dialog
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.launch.progress_dialog import LaunchDialog
from torchx_tui.tui.messages import LaunchProgressed, UsageSampled


def test_long_launch(snap_compare, app):
    async def launching(pilot):
        await at_job(RUNNING)(pilot)
        progress = app.launches.begin("dist.ddp")
        for text in (
            "pulling registry.example/team/llama-train:2026.11: 3 of 14 layers, 812 of 6,240 MB",
            "creating 12 of 64",
        ):
            app.launches.show(LaunchProgressed(progress, "dist.ddp", text))
        await until(pilot, lambda: isinstance(app.screen, LaunchDialog), "the dialog")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=launching)


def test_results_of_many(snap_compare, app):
    async def told(pilot):
        await at_job(RUNNING)(pilot)
        names = [f"eval-arc-c-{number:02}x7k2m9q4wzdj" for number in range(9)]
        failure = "The Docker engine at /var/run/docker.sock refuses the connection: it has stopped. Start it"
        results = [(name, failure if at in (3, 5) else "") for at, name in enumerate(names)]
        await app.push_screen(results_dialog(app, results))

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=told)


def test_job_with_ports_and_usage(snap_compare, tmp_path, monkeypatch):
    monkeypatch.setenv("LOGNAME", "alice")
    monkeypatch.setattr("os.uname", lambda: type("Machine", (), {"nodename": "login03"}))
    scheduler = busy_scheduler(tmp_path / "logs")
    app_id = RUNNING.rpartition("/")[2]
    scheduler.described[app_id] = replace(
        scheduler.described[app_id], ports=[PublishedPort("trainer", 0, "tensorboard", 6006, "", 49153)]
    )
    app = make_app(scheduler, tmp_path)

    async def opened(pilot):
        await at_job(RUNNING, "enter", wait=lambda app: app.screen.query("#replica-grid"))(pilot)
        screen = app.screen
        assert isinstance(screen, JobScreen)
        await until(pilot, lambda: str(screen.doing.rule.title) == "Stalled", "the pause")
        for step in range(40):
            usage = ReplicaUsage(
                "trainer", 0, cpu=4 + 3 * (step % 7) / 7, cpu_total=8.0, memory=(20 + step) << 30, memory_total=64 << 30
            )
            app.on_usage_sampled(UsageSampled(RUNNING, [usage]))
        await until(pilot, lambda: str(screen.doing.rule.title) == "Progress", "no stall, since its cores are in use")

    assert snap_compare(app, run_before=opened)


def test_two_backends(snap_compare, tmp_path):
    docker = CannedScheduler()
    for number, state in enumerate((AppState.RUNNING, AppState.FAILED, AppState.CANCELLED, AppState.SUCCEEDED)):
        docker.add(f"serve-llama-{number}x7k2m9q4wzd", state, (7 + 5 * number) * MINUTE, replicas=2)
    more = {"local_docker": docker}
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, more=more)
    app.schedulers = ["local_docker", "local_cwd"]

    async def filled(pilot):
        await table_of(pilot, 26)
        await at_job(RUNNING)(pilot)

    assert app.now() == NOW
    assert snap_compare(app, terminal_size=(200, 50), run_before=filled)
