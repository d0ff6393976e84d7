"""Pictures of metrics: the Metrics screen, an overlay, and what the Job screen says of a job that trains."""

import math
import os

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app, until
from support.pictures import SIZES, at_job

from torchx_tui.settings.config import Settings
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.metrics.chart import ChartPane
from torchx_tui.tui.metrics.screen import MetricsScreen

WIDE = {"120x40": SIZES["120x40"]}
FORMS = {"torchx-dark": SIZES, "torchx-light": WIDE, "nocolor": WIDE, "ascii": WIDE}
SWEEP = {"llama3-8b-lr-zq2wmx7v5hkdfd": 2e-4, "llama3-8b-lr-b7n1xk4t9wz0rg": 1e-3, "llama3-8b-lr-h3v9q1zj6pcx0d": 2e-2}
TRAINING = f"local_cwd://torchx/{next(iter(SWEEP))}"
STEPS = 400


def sweep(folder):
    """Return a scheduler with three jobs of a sweep: two train, the last one has left its course and failed."""
    scheduler = CannedScheduler(logs=folder)
    for number, (app_id, rate) in enumerate(SWEEP.items()):
        state = AppState.FAILED if rate > 0.01 else AppState.RUNNING
        scheduler.add(app_id, state, 60.0 * (15 - number), why="ValueError: loss is nan" if rate > 0.01 else "")
        scheduler.write_log(app_id, 0, list(_lines(rate)))
    return scheduler


def _lines(rate):
    last = 350 if rate > 0.01 else STEPS
    for step in range(0, last, 2):
        noise = math.sin(step * 12.9898) * 0.06 + (0.4 if step == 212 else 0.0)
        rise = max(0.0, (step - 200) / 120) if rate > 0.01 else 0.0
        loss = 1.7 + 0.9 * math.exp(-step * (0.004 + rate * 2)) + noise + min(rise, 0.6)
        printed = "nan" if 300 <= step < 312 and rate < 1e-3 else f"{loss:.4f}"
        yield (
            (STEPS - step) * 0.5 + 0.3, "o",
            f"step {step}/1000 loss {printed} grad_norm {1 + 30 * math.exp(-step / 20):.2f} lr {rate:g} "
            f"tok/s {447_120 + 500 * math.cos(step):.0f}\n",
        )  # fmt: skip


def _is_read(app):
    screen = app.screen
    # What was read since the charts were drawn is drawn a moment later.
    is_drawn = isinstance(screen, MetricsScreen) and not screen._is_due
    return bool(is_drawn) and all(
        screen.activities.get(row.handle) and screen.activities[row.handle].is_read for row in screen.rows
    )


def make(tmp_path, monkeypatch, form):
    """Return an app with jobs that train: in a theme, without colours or with ASCII alone."""
    if form == "nocolor":
        monkeypatch.setenv("NO_COLOR", "1")
    settings = Settings(theme=form) if form.startswith("torchx") else Settings()
    app = make_app(sweep(tmp_path / "logs"), tmp_path, settings=settings)
    app.ascii_glyphs = form == "ascii"
    return app


@pytest.mark.parametrize("form", FORMS)
def test_metrics(snap_compare, tmp_path, monkeypatch, form):
    app = make(tmp_path, monkeypatch, form)
    assert snap_compare(app, sizes=FORMS[form], run_before=at_job(TRAINING, "p", wait=_is_read))


def test_job_that_trains(snap_compare, tmp_path):
    def shows_chart(app):
        screen = app.screen
        return isinstance(screen, JobScreen) and screen.activity.is_read and screen.doing.display

    app = make_app(sweep(tmp_path / "logs"), tmp_path)
    assert snap_compare(app, sizes=SIZES, run_before=at_job(TRAINING, "enter", wait=shows_chart))


@pytest.mark.parametrize("form", FORMS)
def test_overlay(snap_compare, tmp_path, monkeypatch, form):
    """The cursor stands, and the list is hidden."""
    app = make(tmp_path, monkeypatch, form)

    async def overlaid(pilot):
        await at_job(TRAINING)(pilot)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        screen.table.marks = {row.handle for row in screen.table.rows}
        await pilot.press("o")
        await until(pilot, lambda: _is_read(app), "all jobs")
        await pilot.press("enter")
        # The cursor moves by a cell of the chart.
        await until(pilot, lambda: app.screen.query(ChartPane).first().size.width == app.size.width, "one chart")
        await pilot.press(*["left"] * 20)

    assert snap_compare(app, sizes=FORMS[form], run_before=overlaid)


def test_slow_replica(snap_compare, tmp_path):
    """It is chosen in the grid, which marks it."""
    app_id, logs = TRAINING.rpartition("/")[2], tmp_path / "logs"
    scheduler = CannedScheduler(logs=logs)
    scheduler.add(app_id, AppState.RUNNING, 900.0, replicas=24)
    for k in range(24):
        seconds = 0.212 if k == 18 else 0.118
        lines = [(42.0 - n * 0.5, "o", f"step {n}/90 loss {2 - n / 90:.4f} data_time: {seconds}\n") for n in range(84)]
        scheduler.write_log(app_id, k, lines)
        os.utime(logs / app_id / "trainer" / str(k) / "combined.log", (NOW - 0.5, NOW - 0.5))
    app = make_app(scheduler, tmp_path)

    async def chosen(pilot):
        await at_job(TRAINING, "enter")(pilot)
        screen = app.screen
        assert isinstance(screen, JobScreen)
        await until(pilot, lambda: screen.replicas.grid.slow, "the slow replica")
        await pilot.press("tab", *["right"] * 18)
        await until(pilot, lambda: "slow 1.8x" in screen.replicas.facts.render().plain, "its facts")

    assert snap_compare(app, sizes=SIZES, run_before=chosen)


def test_card_with_a_chart(snap_compare, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 0.2)

    def is_charted(app):
        screen = app.screen
        charts = [pane.rule.right.plain for pane in screen.query(ChartPane)] if isinstance(screen, JobsScreen) else []
        rows = [screen.table.render_line(y).text for y in range(4)] if charts else []
        is_known = sum("39 %" in row for row in rows) == 2 and any("34 %" in row for row in rows)
        return is_known and any("1.8022" in words for words in charts)

    async def charted(pilot):
        # The cursor begins on the job that failed: its curves are kept once they are read.
        await at_job(f"local_cwd://torchx/{list(SWEEP)[-1]}")(pilot)
        await at_job(TRAINING, wait=is_charted)(pilot)

    app = make_app(sweep(tmp_path / "logs"), tmp_path)
    assert snap_compare(app, terminal_size=(160, 45), run_before=charted)
