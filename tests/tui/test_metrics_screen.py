"""The Metrics screen, what a running job's screen says of its pace, and the columns of the table."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.dashboard import key_bar, make_app, until
from support.past_launches import launched
from support.pictures import FAILED, RUNNING, at_job
from textual import events
from textual.pilot import Pilot

from torchx_tui.diagnosis.metrics.export import write_csv
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.metrics.store import save_series
from torchx_tui.diagnosis.progress.activity import Activity
from torchx_tui.specs import AppState
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.metrics.chart import ChartPane
from torchx_tui.tui.metrics.legend import swept_values
from torchx_tui.tui.metrics.screen import MetricsScreen
from torchx_tui.tui.rows import JobRow


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def opened(pilot: Pilot[Any]) -> MetricsScreen:
    """Open the metrics of the running job, and wait until its log is read."""
    await at_job(RUNNING, "p")(pilot)
    await until(
        pilot, lambda: isinstance(pilot.app.screen, MetricsScreen) and pilot.app.screen.left.list.names, "metrics"
    )
    screen = pilot.app.screen
    assert isinstance(screen, MetricsScreen)
    await until(pilot, lambda: screen.activities[RUNNING].is_read, "all of the log")
    return screen


async def doing(pilot: Pilot[Any]) -> JobScreen:
    """Open the screen of the running job, and wait until it says what the job does."""
    await at_job(RUNNING, "enter")(pilot)
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.doing.display, "what it does")
    assert isinstance(app.screen, JobScreen)
    return app.screen


def shown(screen: MetricsScreen) -> list[str]:
    """Return the names of the charts on the screen."""
    return [pane.rule.title.plain for pane in screen.query(ChartPane) if pane.display]


def text_of(pane: ChartPane) -> str:
    return pane.view.render().plain


async def test_charts_are_chosen_zoomed_and_drawn_in_other_ways(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """Every key of the screen changes what it says."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot)
        await until(pilot, lambda: shown(screen) == ["loss", "lr"], "both charts")
        first = screen.query(ChartPane).first()
        await until(pilot, lambda: first.rule.right.plain == "1.5100", "all of the log")
        drawn = text_of(first)
        await pilot.press("s", "s")
        await until(pilot, lambda: "ema" not in first.rule.info.plain and text_of(first) != drawn, "no smoothing")
        await pilot.press("L")
        await until(pilot, lambda: "log" in first.rule.info.plain, "the log scale")
        await pilot.press("t")
        await until(pilot, lambda: screen.summary().plain.startswith("x time"), "time")
        await pilot.press("enter")
        await until(pilot, lambda: (shown(screen), screen.has_class("-zoomed")) == (["loss"], True), "the zoom")
        await until(pilot, lambda: first.size.width == 120, "the chart on all of the screen")
        assert screen.focused is screen.left.list
        await pilot.press("escape", "space")
        await until(pilot, lambda: shown(screen) == ["lr"], "the other chart alone")
        await pilot.press("j", "space")
        assert len(shown(screen)) == 1
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the table")


async def test_metrics_of_marked_jobs_are_overlaid(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """One chart with a line each, and a table with the best one first."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_job(RUNNING)(pilot)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        screen.table.marks = {row.handle for row in screen.table.rows[:3]} | {RUNNING}
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, MetricsScreen) and app.screen._listed(), "metrics")
        overlay = app.screen
        assert isinstance(overlay, MetricsScreen)
        assert len(overlay.legend.order) == 4
        submitted = [row.submitted_at for row in overlay.rows]
        assert submitted == sorted(submitted, key=lambda at: at or 0)
        await until(pilot, lambda: overlay.legend.order[0].handle == RUNNING, "its loss")
        await until(pilot, lambda: "best" in overlay.legend.render().plain, "the best one")
        await until(pilot, lambda: overlay.activities[RUNNING].is_read, "all of the log")
        first = overlay.query(ChartPane).first()
        await pilot.press("left")
        assert (last := overlay.options.cursor) is not None
        assert f" AT {last:,.0f}\n" in overlay.legend.render().plain
        assert "┊" in text_of(first)
        await pilot.press("plus", "plus", "left")
        assert (cursor := overlay.options.cursor) is not None
        assert 0 < last - cursor <= 40
        window = overlay.options.window
        assert window is not None
        assert window[0] < cursor <= window[1]
        assert window[1] - window[0] < 150
        await pilot.press("escape")
        assert (overlay.options.window, overlay.options.cursor) == (None, None)
        await pilot.press("space")
        await until(pilot, lambda: overlay.jobs_pane.rule.info.plain == "4, best first, 1 hidden", "the line is gone")
        assert RUNNING not in [row.handle for _, row in overlay._lines(overlay._series_of("loss"))]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: overlay.legend.chosen == overlay.legend.order[1], "the next job")
        # From the metrics of another job too.
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "the table")
        screen.table.post_message(JobTable.MarksChanged())
        await until(pilot, lambda: len(app.jobs.marked) == 4, "the marks")
        screen.table.move_to(RUNNING)
        await pilot.press("enter", "p")
        await until(pilot, lambda: isinstance(app.screen, MetricsScreen) and len(app.screen.rows) == 1, "one job")
        await pilot.press("o")
        await until(
            pilot, lambda: isinstance(app.screen, MetricsScreen) and len(app.screen.rows) == 4, "all marked jobs"
        )


async def test_a_sweep_is_overlaid_without_marks_and_its_best_job_launched_again(
    scheduler: CannedScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs that were launched together; relaunch takes the one at the cursor of the table."""
    handles = [RUNNING, *[f"local_cwd://torchx/{app_id}" for app_id in scheduler.apps if app_id not in RUNNING][:2]]
    app = make_app(scheduler, tmp_path)
    for handle in handles:
        launched(app.runner.journal, "train", 60, "RUNNING", app_id=handle.rpartition("/")[2], group="sweep-1")
    again: list[str] = []
    monkeypatch.setattr(app.runner, "relaunch", lambda handle, **_: again.append(handle) or f"{handle}-2")
    async with app.run_test(size=(120, 40)) as pilot:
        # What the journal tells of rows may follow them.
        await until(pilot, lambda: sum(row.group == "sweep-1" for row in app.jobs.rows.values()) == 3, "the sweep")
        await opened(pilot)
        assert not app.jobs.marked
        await pilot.press("o")
        await until(
            pilot,
            lambda: isinstance(app.screen, MetricsScreen) and {row.handle for row in app.screen.rows} == {*handles},
            "the sweep",
        )
        overlay = app.screen
        assert isinstance(overlay, MetricsScreen)
        assert overlay.path()[1] == "sweep-1"
        await until(pilot, lambda: overlay.legend.order and overlay.legend.order[0].handle == RUNNING, "its loss")
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: overlay.legend.chosen == overlay.legend.order[1], "the second one")
        await pilot.press("r")
        await until(pilot, lambda: again == [overlay.legend.order[1].handle], "its launch")


async def test_metrics_are_saved(scheduler: CannedScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every point as CSV, and a picture; what is there already is not overwritten."""
    monkeypatch.chdir(tmp_path)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        await pilot.press("S")
        await until(pilot, lambda: list(tmp_path.glob("*.svg")), "the first files")
        await pilot.press("S")
        await until(pilot, lambda: len(list(tmp_path.glob("*.svg"))) == 2, "the second files")
    first, second = (path.read_text() for path in tmp_path.glob("*.csv"))  # noqa: ASYNC240 - the app has ended
    assert first == second
    rows = list(csv.DictReader(io.StringIO(first)))
    assert [row["value"] for row in rows if row["metric"] == "loss"][:2] == ["1.9", "1.89"]


async def test_job_screen_says_what_a_running_job_does(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """The chart takes the place of Why; the head tells step and pause, and a stall is said with its evidence."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await doing(pilot)
        await until(pilot, lambda: screen.activity.is_read, "all of the log")
        await until(pilot, lambda: "no step for 3m 30s, usually 10s" in screen.state_line.left.plain, "the pause")
        assert "step 14,990" in screen.state_line.left.plain
        assert screen.doing.rule.title.plain == "Stalled"
        assert (screen.why.display, screen.progress_row.display) == (False, False)
        assert screen.focused is screen.doing.chart
        assert key_bar(app)[:6] == ["l Logs", "p Metrics", "r Relaunch", "e Edit", "x Cancel", "y Copy handle"]
        # Of one that tells its steps alone, no metric is named.
        screen.doing.show(Activity())
        assert (screen.doing.rule.info.plain, screen.doing.rule.right.plain) == ("", "")


async def test_nothing_is_read_of_a_job_whose_screen_is_left(scheduler: CannedScheduler, tmp_path: Path) -> None:
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await doing(pilot)
        assert screen.readers is not None
        reader = screen.readers._readers[RUNNING]
        await pilot.press("escape")
        await until(pilot, lambda: not reader._thread.is_alive(), "the end of its reader")
        # It may have asked for the time meanwhile.
        assert reader._now() == app.now()


async def test_key_pressed_while_the_chart_appears_is_not_undone(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """The chart takes the focus of Why, and not that of the replicas, which `tab` has just chosen."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await doing(pilot)
        activity, nothing = screen.activity, Activity()
        screen.activity = nothing
        screen._show_doing()
        await until(pilot, lambda: screen.focused is screen.why.body, "the reason")
        # The key is queued before the chart appears, and acts after it.
        app.post_message(events.Key("tab", None))
        screen.activity = activity
        screen._show_doing()
        await until(pilot, lambda: screen.focused is not screen.doing.chart, "the key")
        await pilot.pause()
        assert screen.focused is screen.replicas.grid


async def test_as_many_values_stand_under_the_chart_as_fit(tmp_path: Path) -> None:
    """The usual ones first, those of the machine last, each whole."""
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("train-zq2wmx7v5hkdfd", AppState.RUNNING, 900)
    values = "gpu_util: 0.5 accuracy: 0.25 f1: 15 grad_norm: 3.5, lr: 0.0002"
    lines = [(21.0 - step * 0.5, "o", f"step {step}/90 loss: 1.5 {values}\n") for step in range(40)]
    scheduler.write_log("train-zq2wmx7v5hkdfd", 0, lines)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_job("local_cwd://torchx/train-zq2wmx7v5hkdfd", "enter")(pilot)
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.doing.display, "what it does")
        screen = app.screen
        assert isinstance(screen, JobScreen)
        await until(pilot, lambda: screen.activity.is_read, "all of the log")

        def shown() -> str:
            return str(screen.doing._values.render())

        await until(pilot, lambda: shown() == " lr 0.0002   grad_norm 3.5   accuracy 0.25   f1 15", "four values")
        assert len(shown()) == screen.doing.size.width
        await pilot.resize_terminal(200, 50)
        names = ["lr 0.0002", "grad_norm 3.5", "accuracy 0.25", "f1 15", "gpu_util 0.5"]

        def with_courses(count: int) -> str:
            return "  ".join(f" {name} {'▄' * 8}" for name in names[:count])

        await until(pilot, lambda: shown() == with_courses(5), "all, with their course")
        assert screen.summary().plain == "Metrics from the log: loss, gpu_util, accuracy, f1, ...; rate over 5 min"
        # The pane has all of a narrow screen.
        await pilot.resize_terminal(60, 24)
        await until(pilot, lambda: screen.doing.size.width == 60 and shown() == with_courses(2), "two")
        await pilot.resize_terminal(59, 24)
        await until(pilot, lambda: shown() == "  ".join(f" {name}" for name in names[:4]), "four without")


async def test_columns_of_progress(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """They are there where the screen is wide enough."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(160, 40)) as pilot:
        await at_job(RUNNING)(pilot)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        assert RUNNING in screen.table.on_screen[0]

        table = screen.table

        def line() -> str:
            return next((text for y in range(30) if "sft-…kdfd" in (text := table.render_line(y).text)), "")

        await until(pilot, lambda: "step 14,990" in line() and "1.5100" in line(), "its progress")


async def test_ended_job_has_the_metric_that_was_kept(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """Kept metrics count where they are further than the end of the log."""
    series = Series("loss")
    for step in range(3):
        series.add(step, 0.5, printed="0.50719")
    save_series(FAILED, {"loss": series}, {"step": 27_000, "total": 100_000})
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(160, 40)) as pilot:
        await at_job(RUNNING)(pilot)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        table = screen.table

        def line() -> str:
            return next((text for y in range(30) if "✗ Failed" in (text := table.render_line(y).text)), "")

        await until(pilot, lambda: "27 %" in line() and "0.50719" in line(), "how far it came")


@pytest.mark.parametrize(("key", "screen"), [("p", MetricsScreen), ("enter", JobScreen)])
async def test_open_screen_drops_pace_when_job_ends(tmp_path: Path, key: str, screen: type) -> None:
    """Its last step and part stay; also while the job's own description still says that it runs."""
    handle = "local_cwd://torchx/train-zq2wmx7v5hkdfd"
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("train-zq2wmx7v5hkdfd", AppState.RUNNING, 900)
    steps = [(21.0 - step * 0.5, "o", f"step {step}/90 loss 1.5\n") for step in range(41)]
    scheduler.write_log("train-zq2wmx7v5hkdfd", 0, steps)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_job(handle, key)(pilot)
        await until(pilot, lambda: isinstance(app.screen, screen), "the screen")

        def head() -> str:
            shown: Any = app.screen
            return shown.state_line.left.plain if screen is JobScreen else str(shown.state_line.render())

        await until(pilot, lambda: "step 40 of 90   44 %   2 it/s   ends in" in head(), "its pace")
        scheduler.apps["train-zq2wmx7v5hkdfd"] = replace(
            scheduler.apps["train-zq2wmx7v5hkdfd"], state=AppState.SUCCEEDED
        )
        app.feed.refresh()
        await until(pilot, lambda: "Succeeded" in head(), "its end")
        assert head().rstrip().endswith("step 40 of 90   44 %")


async def test_slow_replica_is_marked_with_its_evidence(tmp_path: Path) -> None:
    """In the grid, beside the facts of that replica, above the chart, and on the card."""
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("train-zq2wmx7v5hkdfd", AppState.RUNNING, 900, replicas=3)
    for k in range(3):
        seconds = 0.212 if k == 2 else 0.118
        lines = [(21.0 - step * 0.5, "o", f"step {step}/90 loss 1.5 data_time: {seconds}\n") for step in range(40)]
        scheduler.write_log("train-zq2wmx7v5hkdfd", k, lines)
    words = "slow 1.8x: trainer/2, its data_time is 0.212, elsewhere 0.118"
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await at_job("local_cwd://torchx/train-zq2wmx7v5hkdfd")(pilot)
        jobs = app.screen
        assert isinstance(jobs, JobsScreen)
        await until(pilot, lambda: words in jobs.card.body.slow.plain, "the card")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.replicas.grid.slow, "the grid")
        screen = app.screen
        assert isinstance(screen, JobScreen)
        assert screen.replicas.rule.right.plain == "1 slow"
        await until(pilot, lambda: " 0 ●   1 ●   2 !" in screen.replicas.grid.render_line(0).text, "the sign")
        assert f"! S{words[1:]}" in str(screen.doing._notes.render())
        assert words not in screen.replicas.facts.render().plain
        await pilot.press("tab", "right", "right")
        await until(
            pilot, lambda: "! " + words.replace(", ", "\n", 1) in screen.replicas.facts.render().plain, "its facts"
        )
        await until(
            pilot,
            lambda: screen.summary().plain == "Metrics from the log: loss, data_time; rate over 5 min",
            "where they come from",
        )


def test_csv_tells_what_each_row_stands_for() -> None:
    """Values that are not finite, and buckets of several points."""
    series = Series("loss")
    for step in range(4_001):
        series.add(step, float("nan") if step == 0 else float(step), 10.0)
    file = io.StringIO()
    write_csv(file, [series])
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert list(rows[0].values()) == ["loss", "3", "10.000", "3.0", "1.0", "3.0", "4"]
    assert sum(int(row["points"]) for row in rows) == 4_001


async def test_card_has_a_chart_where_there_is_room(scheduler: CannedScheduler, tmp_path: Path) -> None:
    """Of the job at the cursor alone; a smaller screen shows the facts."""
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await at_job(RUNNING)(pilot)
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        card = screen.card
        await until(pilot, lambda: card.has_class("-charted"), "the chart")
        chart = card.query_one(ChartPane)
        await until(pilot, lambda: chart.display and chart.rule.right.plain == "1.5100", "its loss")
        assert chart.size.width + card.body.size.width <= card.size.width
        screen.table.move_to(FAILED)
        await until(pilot, lambda: card.rule.title.plain.startswith("llama3-8b-sft-b7"), "the other job")
        readers = card.readers
        assert readers is not None
        await until(pilot, lambda: list(readers._readers) in ([], [FAILED]), "the end of the first reader")
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: not card.has_class("-large"), "the facts alone")


def test_swept_arguments_have_names() -> None:
    """However they are written; those that all jobs share are left out."""
    rows = [
        JobRow(str(n), "local_cwd", str(n), AppState.RUNNING, arguments=text)
        for n, text in enumerate(["train.py --lr 0.1 --amp --seed=1 -3", "train.py --lr -0.2 --seed=2 -3"])
    ]
    assert swept_values(rows) == (["lr", "amp", "seed"], [["0.1", "yes", "1"], ["-0.2", "", "2"]])
