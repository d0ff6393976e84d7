"""Pictures of each screen, at 80x24 and 120x40, in colours, in the terminal's own, without any, and in ASCII.

After ``make test ARGS="tests/snapshots --snapshot-update"`` open each changed picture and look at it.
"""

import time
from types import SimpleNamespace

import pytest
from support.canned import NOW, CannedScheduler, busy_scheduler
from support.dashboard import make_app, until
from support.pictures import FAILED, RUNNING, SIZES, at_job, stands_at_cause
from support.screens import table_of
from textual import events

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.types import Finding
from torchx_tui.components.build import build_app
from torchx_tui.doctor.checks import Diagnosed
from torchx_tui.settings.config import Settings
from torchx_tui.specs.status import AppState
from torchx_tui.tui.doctor import screen as doctor


def test_jobs(snap_compare, app):
    assert snap_compare(app, sizes=SIZES, run_before=at_job(RUNNING))


def test_jobs_200x50(snap_compare, app):
    assert snap_compare(app, terminal_size=(200, 50), run_before=at_job(RUNNING, "space"))


@pytest.mark.parametrize("theme", ["torchx-light", "torchx-ansi-dark", "torchx-color-blind"])
def test_jobs_themes(snap_compare, tmp_path, theme):
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=Settings(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), run_before=at_job(RUNNING))


def test_jobs_stale(snap_compare, tmp_path, monkeypatch):
    """A backend that does not answer keeps its rows, dimmed, and says since when."""
    clock = SimpleNamespace(time=lambda: NOW, monotonic=time.monotonic)
    monkeypatch.setattr("torchx_tui.tui.watch.poller.time", clock)
    monkeypatch.setattr("torchx_tui.base.backoff.jittered", lambda _seconds: 60.0)
    scheduler = busy_scheduler(tmp_path / "logs")
    app = make_app(scheduler, tmp_path)

    async def fail(pilot):
        await at_job(RUNNING)(pilot)
        scheduler.error = ConnectionError("connection refused: 10.0.0.1:6443")
        await pilot.press("R")
        await until(pilot, lambda: app.jobs.outages, "the outage")

    assert snap_compare(app, terminal_size=(120, 40), run_before=fail)


def test_jobs_ten_thousand_filtered(snap_compare, tmp_path):
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    states = [AppState.SUCCEEDED, AppState.FAILED, AppState.RUNNING, AppState.PENDING]
    for number in range(10_000):
        why = "RuntimeError: loss is nan: trainer/2, exit 1" if number % 4 == 1 else ""
        scheduler.add(f"llama3-8b-sft-{number:05d}", states[number % 4], 60.0 * number, why=why)
    app = make_app(scheduler, tmp_path)

    async def filtered(pilot):
        table = await table_of(pilot, 10_000)
        await table.press("slash")
        app.post_message(events.Paste("state:failed name~7.$"))
        await table.press("enter", "j", "j", "space", until=lambda: table.table.row_count < 1000, what="the filter")
        await table.until(lambda: table.screen.logs.log_pane.status.state == "ended", "the end of the log")

    assert snap_compare(app, terminal_size=(200, 50), run_before=filtered)


def test_jobs_no_color_ascii(snap_compare, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path, settings=Settings(ascii=True))
    assert snap_compare(app, terminal_size=(80, 24), run_before=at_job(RUNNING))


def test_jobs_filter(snap_compare, app):
    filtered = at_job(
        RUNNING, "slash", *"state:failed", wait=lambda app: app.screen.table.row_count == 1 and stands_at_cause(app)
    )
    assert snap_compare(app, terminal_size=(120, 40), run_before=filtered)


def test_first_run(snap_compare, tmp_path):
    app = make_app(CannedScheduler(), tmp_path)

    async def run_before(pilot):
        table = await table_of(pilot)
        await table.until(lambda: table.screen.first_run.display and app.jobs.findings, "the findings")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=run_before)


@pytest.mark.parametrize("size", SIZES)
def test_job_failed(snap_compare, app, size):
    assert snap_compare(app, terminal_size=SIZES[size], run_before=at_job(FAILED, "enter", wait=stands_at_cause))


def test_cancel(snap_compare, app):
    dialog = at_job(RUNNING, "x", wait=lambda app: app.screen.query("#keep"))
    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=dialog)


def test_keys(snap_compare, app):
    listed = at_job(RUNNING, "question_mark", wait=lambda app: app.screen.query("#keys"))
    assert snap_compare(app, terminal_size=(120, 40), run_before=listed)


def test_launch_pick(snap_compare, app):
    picked = at_job(
        RUNNING, "n", *"sh", wait=lambda app: "utils.sh" in app.screen.docs.rule.title.plain
    )  # fmt: skip
    assert snap_compare(app, sizes=SIZES, run_before=picked)


def form_of_demo(*keys):
    """Open the form of demo.train, filled from an earlier launch."""

    async def run_before(pilot):
        app = pilot.app
        journal: Journal = app.runner.journal
        arguments = {"steps": "40", "num_replicas": "4"}
        journal.record_intent(
            build_app("demo.train", arguments), "local_cwd", "torchx", {}, origin=LaunchOrigin("demo.train", arguments)
        )
        launch = await (await table_of(pilot, 1)).picker()
        launch.set_search("demo")
        await launch.finds("demo.train")
        await launch.choose()
        await launch.until(lambda: launch.editor.session.request, "the request")
        await launch.press(*keys, until=lambda: not keys or launch.model.errors() or launch.tab() != "command")

    return run_before


def test_launch_form_error(snap_compare, app):
    assert snap_compare(app, sizes=SIZES, run_before=form_of_demo("end", "x"))


def test_launch_form_200x50(snap_compare, app):
    assert snap_compare(app, terminal_size=(200, 50), run_before=form_of_demo())


def test_launch_diff(snap_compare, app):
    assert snap_compare(app, terminal_size=(120, 40), run_before=form_of_demo("end", "0", "ctrl+t"))


ENGINE_ADVICE = "Start it (`systemctl start docker`), or say where it is with DOCKER_HOST or `docker context use NAME`"
NO_ENGINE = "The Docker engine at /var/run/docker.sock was not found: Docker is not installed or not started"
DIAGNOSED = [
    Diagnosed("program", Finding("ok", "torchx-tui 0.2.0, Python 3.11.7 (/home/alice/venv/bin/python)")),
    Diagnosed(
        "config.toml",
        Finding("error", "config.toml, line 12: thmee is not a setting; did you mean theme?", "correct it"),
    ),
    Diagnosed("profiles and .torchxconfig", Finding("ok", "/home/alice/llm/.torchxconfig is used")),
    Diagnosed("terminal", Finding("ok", "120 columns, 40 rows")),
    Diagnosed("terminal", Finding("ok", "TERM is xterm-256color: 16 million colours")),
    Diagnosed(
        "terminal",
        Finding("warning", "tmux does not pass copies (OSC 52) to the terminal", "`tmux set -g set-clipboard on`"),
    ),
    Diagnosed("folders", Finding("ok", "state: /home/alice/.local/state/torchx-tui, 812.4 GB free")),
    Diagnosed("logout", Finding("ok", "jobs on this machine continue after you log out")),
    Diagnosed("local_docker", Finding("error", NO_ENGINE, ENGINE_ADVICE)),
    Diagnosed("local_cwd", Finding("ok", "this machine: 32 cpu, 8 gpu, 1080 GB")),
    Diagnosed("kubernetes", Finding("ok", "there")),
]


def test_doctor(snap_compare, app, monkeypatch):
    monkeypatch.setattr(doctor, "diagnose", lambda *_: iter(DIAGNOSED))

    async def run(pilot):
        table = await table_of(pilot)
        app.action_doctor()
        report = await table.open(doctor.DoctorScreen)
        await table.until(lambda: report.is_done, "the report")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=run)
