"""The Metrics screen, what a running job's screen says of its pace, and the columns of the table."""

import csv
import io
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app
from support.past_launches import launched
from support.pictures import FAILED, RUNNING
from support.screens import Driver, jobs_of, text_of
from textual import events

from torchx_tui.diagnosis.metrics.export import write_csv
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.metrics.store import save_series
from torchx_tui.diagnosis.progress.activity import Activity
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.metrics.chart import ChartPane
from torchx_tui.tui.metrics.legend import swept_values
from torchx_tui.tui.metrics.screen import MetricsScreen
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.watch.signals import NO_CHANGE

SIZE = (120, 40)


class Metrics(Driver):
    """The metrics of jobs."""

    def charts(self):
        """Return the names of the charts on the screen."""
        return [pane.rule.title.plain for pane in self.screen.query(ChartPane) if pane.display]

    @property
    def first(self):
        return self.screen.query(ChartPane).first()

    def chart(self):
        """Return the first chart as it is drawn."""
        return self.first.view.render().plain

    def info(self):
        """Return what stands beside the name of the first chart."""
        return self.first.rule.info.plain

    def legend(self):
        return self.screen.legend.render().plain

    def best(self):
        return next((row.handle for row in self.screen.legend.order), "")

    async def has(self, count):
        """Wait until the screen is that of so many jobs."""
        await self.until(lambda: len(self.screen.rows) == count, f"{count} jobs")

    async def is_read(self):
        """Wait until the log of the running job is read."""
        await self.until(lambda: RUNNING in self.screen.activities, "the log")
        await self.until(lambda: self.screen.activities[RUNNING].is_read, "all of it")


async def metrics(driver, *keys):
    """Open metrics by keys."""
    await driver.open(MetricsScreen, *keys)
    return Metrics(driver.pilot)


@asynccontextmanager
async def doing_of(app, handle=RUNNING, size=SIZE):
    """Open the screen of a running job, and wait until its log is read."""
    async with jobs_of(app, size) as table:
        table.table.move_to(handle)
        job = await table.job()
        await job.until(lambda: job.screen.doing.display and job.screen.activity.is_read, "what it does")
        yield job


def training(folder, text, replicas=1, steps=40, state=AppState.RUNNING):
    """Return a dashboard with one job, each replica of which logs two steps a second.

    Args:
        folder: where it keeps its files.
        text: what stands behind the step; its `{k}` is the replica's number.
        replicas: how many there are.
        steps: how many each has logged.
        state: the job's state.
    """
    scheduler = CannedScheduler(logs=folder / "logs")
    scheduler.add("train-1", state, 900 if state is AppState.RUNNING else 3_600, replicas=replicas)
    for k in range(replicas):
        words = text.format(k=k)
        lines = [(21.0 - step * 0.5, "o", f"step {step}/90 loss: 1.5 {words}\n") for step in range(steps)]
        scheduler.write_log("train-1", k, lines)
    return scheduler, make_app(scheduler, folder)


TRAINING = "local_cwd://torchx/train-1"


async def test_charts_are_saved_and_drawn_in_other_ways(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with jobs_of(app) as table:
        table.table.move_to(RUNNING)
        page = await metrics(table, "p")
        await page.is_read()
        await page.until(lambda: page.charts() == ["loss", "lr"], "both charts")
        await page.until(lambda: page.first.rule.right.plain == "1.5100", "all of the log")
        # What is there already is not overwritten.
        for count in (1, 2):
            await page.press(
                "S", until=lambda count=count: len(list(tmp_path.glob("*.svg"))) == count, what="the files"
            )
        drawn = page.chart()
        # There are 40 points: too few to be smoothed.
        await page.press("s")
        await page.settled()
        assert (page.info(), page.chart()) == ("", drawn)
        await page.press("L", until=lambda: page.info() == "log", what="the log scale")
        await page.press("t", until=lambda: page.screen.summary().plain.startswith("x time"), what="time")
        await page.press(
            "enter", until=lambda: page.charts() == ["loss"] and page.screen.has_class("-zoomed"), what="the zoom"
        )
        await page.until(lambda: page.first.size.width == 120, "the chart on all of the screen")
        assert page.focused() is page.screen.list
        await page.press("escape", "space", until=lambda: page.charts() == ["lr"], what="the other chart alone")
        await page.press("j", "space")
        assert len(page.charts()) == 1
        await table.back("escape")
    first, second = (path.read_text() for path in tmp_path.glob("*.csv"))
    assert first == second
    rows = list(csv.DictReader(io.StringIO(first)))
    assert [row["value"] for row in rows if row["metric"] == "loss"][:2] == ["1.9", "1.89"]


async def test_smoothing_goes_through_none_light_and_strong(tmp_path):
    """The title says it, and raw points are behind a smoothed curve."""
    scheduler, app = training(tmp_path, "")
    scheduler.write_log("train-1", 0, [(41.0 - n * 0.5, "o", f"step {n}/90 loss: {n % 7}\n") for n in range(80)])
    async with jobs_of(app) as table:
        page = await metrics(table, "p")
        await page.until(lambda: page.charts() and page.first.rule.right.plain == "2", "all of the log")
        seen = {}
        for _ in range(4):
            seen.setdefault(page.info(), set()).add(page.chart())
            await page.press("s")
            await page.settled()
    assert list(seen) == ["light smoothing", "strong smoothing", ""]
    assert [len(drawn) for drawn in seen.values()] == [1, 1, 1]
    assert len(set.union(*seen.values())) == 3


async def test_metrics_of_marked_jobs_are_overlaid(app):
    async with jobs_of(app) as table:
        table.table.move_to(RUNNING)
        table.table.marks = {row.handle for row in table.table.rows[:3]} | {RUNNING}
        page = await metrics(table, "o")
        screen, options = page.screen, lambda: page.screen.options
        assert len(screen.legend.order) == 4
        submitted = [row.submitted_at for row in screen.rows]
        assert submitted == sorted(submitted, key=lambda at: at or 0)
        await page.until(lambda: page.best() == RUNNING and "best" in page.legend(), "the best one")
        await page.is_read()
        head, row = page.legend().splitlines()[:2]
        assert [row[head.index(word) - 1 : head.index(word) + 1].isspace() for word in ("STATE", "JOB")] == [False] * 2
        assert {row[head.index(word) - 1] for word in ("STATE", "JOB")} == {" "}
        await page.press("left")
        last = options().cursor
        assert f" AT {last:,.0f}\n" in page.legend()
        assert "┊" in page.chart()
        await page.press("plus", "plus", "left")
        cursor, (first, end) = options().cursor, options().window
        assert 0 < last - cursor <= 40
        assert first < cursor <= end < first + 150
        await page.press("escape")
        assert (options().window, options().cursor) == (None, None)
        assert "1.9" in page.chart()
        await page.press(
            "space", until=lambda: screen.jobs_pane.rule.info.plain == "4, best first, 1 hidden", what="the job hidden"
        )
        assert "1.9" not in page.chart()
        await page.press(
            "right_square_bracket", until=lambda: screen.legend.chosen == screen.legend.order[1], what="the next job"
        )
        # From the metrics of another job too.
        await table.back("escape")
        table.table.post_message(JobTable.MarksChanged())
        await table.until(lambda: len(app.jobs.marked) == 4, "the marks")
        table.table.move_to(RUNNING)
        page = await metrics(await table.job(), "p")
        await page.has(1)
        await page.press("o", until=lambda: app.screen is not page.screen, what="all marked jobs")
        await Metrics(page.pilot).has(4)


async def test_overlay_is_bounded_to_sixteen_jobs(app):
    async with jobs_of(app, rows=22) as table:
        page = await metrics(table, "asterisk", "p")
        assert len(page.screen.rows) == 16
        assert page.screen.title_rule.title.plain == "The first 16 of 22 jobs"
        await page.shows("The first 16 of 22 jobs", on="drawn")


async def test_best_job_of_a_sweep_is_launched_again(app, scheduler, monkeypatch):
    handles = {RUNNING, *[f"local_cwd://torchx/{app_id}" for app_id in scheduler.apps if app_id not in RUNNING][:2]}
    for handle in handles:
        launched(app.runner.journal, "train", 60, "RUNNING", app_id=handle.rpartition("/")[2], group="sweep-1")
    again = []
    monkeypatch.setattr(app.runner, "relaunch", lambda handle, **_: again.append(handle) or f"{handle}-2")
    async with jobs_of(app) as table:
        # What the journal tells of rows may follow them.
        await table.until(lambda: sum(row.group == "sweep-1" for row in app.jobs.rows.values()) == 3, "the sweep")
        table.table.move_to(RUNNING)
        one = await metrics(table, "p")
        await one.press("o", until=lambda: app.screen is not one.screen, what="the sweep")
        page = Metrics(one.pilot)
        assert {row.handle for row in page.screen.rows} == handles
        assert page.screen.path()[1] == "sweep-1"
        await page.until(lambda: page.best() == RUNNING, "its loss")
        await page.press("right_square_bracket")
        second = page.screen.legend.order[1]
        await page.until(lambda: page.screen.legend.chosen == second, "the second one")
        await page.press("r", until=lambda: again == [second.handle], what="its launch")


async def test_points_of_a_metric_are_copied(app, monkeypatch):
    copied = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append((text, what)))
    async with jobs_of(app) as table:
        table.table.move_to(RUNNING)
        page = await metrics(table, "p")
        await page.until(lambda: page.charts() and page.first.rule.right.plain == "1.5100", "all of the log")
        assert page.screen.check_action("relaunch", ())
        await page.press("y")
    [(text, what)] = copied
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (what, {row["metric"] for row in rows}, rows[-1]["value"]) == ("the points of loss", {"loss"}, "1.51")


async def test_read_only_metrics_launch_nothing(scheduler, tmp_path):
    async with jobs_of(make_app(scheduler, tmp_path, read_only=True)) as table:
        table.table.move_to(RUNNING)
        assert not (await metrics(table, "p")).screen.check_action("relaunch", ())


async def test_job_screen_says_what_a_running_job_does(app):
    async with doing_of(app) as job:
        screen, activity = job.screen, job.screen.activity
        await job.shows("step 14,990", "no step for 3m 30s, usually 10s", on="state")
        assert screen.doing.rule.title.plain == "Stalled"
        assert (screen.why.display, screen.progress_row.display) == (False, False)
        assert job.focused() is screen.doing.chart
        assert job.key_hints()[:6] == ["l Logs", "p Metrics", "r Relaunch", "x Cancel", "e Edit", "y Copy handle"]
        # Of one that tells its steps alone, no metric is named.
        screen.doing.show(Activity())
        assert (screen.doing.rule.info.plain, screen.doing.rule.right.plain) == ("", "")
        # The chart takes the focus of Why, and not that of the replicas: the key is queued before the chart appears,
        # and acts after it.
        screen.activity = Activity()
        screen._show_doing()
        await job.until(lambda: job.focused() is screen.why.body, "the reason")
        app.post_message(events.Key("tab", None))
        screen.activity = activity
        screen._show_doing()
        await job.until(lambda: job.focused() is not screen.doing.chart, "the key")
        await job.pilot.pause()
        assert job.focused() is screen.replicas.grid
        # Nothing is read of a job whose screen is left; the reader may have asked for the time meanwhile.
        reader = app.feed.activities._readers[RUNNING]
        await job.press("escape", until=lambda: not reader._thread.is_alive(), what="the end of its reader")
        assert reader._now() == app.now()


async def test_as_many_values_stand_under_the_chart_as_fit(tmp_path):
    _, app = training(tmp_path, "gpu_util: 0.5 accuracy: 0.25 f1: 15 grad_norm: 3.5, lr: 0.0002")
    # The usual ones first, those of the machine last.
    names = ["lr 0.0002", "grad_norm 3.5", "accuracy 0.25", "f1 15", "gpu_util 0.5"]
    async with doing_of(app, TRAINING, (80, 24)) as job:
        screen = job.screen

        async def shows(text):
            await job.until(lambda: text_of(screen.doing._values) == text, text)

        await shows(" lr 0.0002   grad_norm 3.5   accuracy 0.25   f1 15")
        assert screen.doing.size.width == 50
        await job.resize(200, 50)
        await shows("  ".join(f" {name} {'▄' * 8}" for name in names))
        assert screen.summary().plain == "Metrics from the log: loss, gpu_util, accuracy, f1, ...; rate over 5 min"
        # The pane has all of a narrow screen.
        await job.resize(60, 24)
        await shows("  ".join(f" {name} {'▄' * 8}" for name in names[:2]))
        await job.resize(59, 24)
        await shows("  ".join(f" {name}" for name in names[:4]))


@pytest.mark.parametrize("key", ["p", "enter"])
async def test_open_screen_shows_average_rate_when_job_ends(tmp_path, key):
    """Instead of the pace and the time left; also while the job's own description still says that it runs."""
    scheduler, app = training(tmp_path, "", steps=41)
    async with jobs_of(app) as table:
        screen = await table.open({"p": MetricsScreen, "enter": JobScreen}[key], key)

        def head():
            return screen.state_line.left.plain if key == "enter" else text_of(screen.state_line)

        await table.until(lambda: "step 40 of 90   44 %   2 it/s   ends in" in head(), "its pace")
        scheduler.apps["train-1"] = replace(scheduler.apps["train-1"], state=AppState.SUCCEEDED)
        app.feed.refresh()
        await table.until(lambda: "Succeeded" in head(), "its end")
        assert head().rstrip().endswith("step 40 of 90   44 %   2 it/s on average")


async def test_ended_job_shows_duration_and_average_rate(tmp_path):
    _, app = training(tmp_path, "", steps=41, state=AppState.SUCCEEDED)
    async with jobs_of(app) as table:
        page = await metrics(table, "p")
        expected = " after 19m 58s   step 40 of 90   44 %   2 it/s on average"
        await page.until(lambda: text_of(page.screen.state_line).endswith(expected), "its duration")


FAILURE = "metrics.csv cannot be read: Permission denied"


async def test_charts_of_a_job_that_is_read_need_no_news(app, monkeypatch):
    async with doing_of(app) as job:
        monkeypatch.setattr(app.signals.activity, "publish", lambda _: None)
        charts = await metrics(job, "p")
        await charts.until(lambda: "loss" in charts.charts(), "its charts")


async def test_job_screen_names_files_that_cannot_be_read(app):
    async with doing_of(app) as job:
        job.screen.doing.show(Activity(failures=(FAILURE,)))
        assert text_of(job.screen.doing._notes) == f"! M{FAILURE[1:]}"


async def test_metrics_screen_names_files_that_cannot_be_read(app):
    async with jobs_of(app, (160, 40)) as table:
        table.table.move_to(RUNNING)
        page = await metrics(table, "p")
        await page.is_read()
        activity = page.screen.activities[RUNNING]
        page.screen.activities[RUNNING] = replace(activity, observations=(), failures=(FAILURE,))
        page.app.signals.rows.publish(NO_CHANGE)
        assert text_of(page.screen.state_line).endswith(f"   ! {FAILURE}")


async def test_card_names_the_slow_replica(tmp_path):
    scheduler, app = training(tmp_path, "data_time: 0.118", replicas=3)
    lines = [(21.0 - step * 0.5, "o", f"step {step}/90 loss: 1.5 data_time: 0.212\n") for step in range(40)]
    scheduler.write_log("train-1", 2, lines)
    words = "slow 1.8x: trainer/2, its data_time is 0.212, elsewhere 0.118"
    async with jobs_of(app, (160, 45)) as table:
        await table.until(lambda: words in table.screen.card.body.slow.plain, "the card")


async def test_table_and_card_say_how_far_jobs_are(app):
    # Kept metrics count where they are further than the end of the log.
    series = Series("loss")
    for step in range(3):
        series.add(step, 0.5, printed="0.50719")
    save_series(FAILED, {"loss": series}, {"step": 100_000, "total": 100_000})
    async with jobs_of(app, (160, 45)) as table:
        card = table.screen.card
        chart = card.query_one(ChartPane)

        def line(word):
            return next((text for text in table.lines() if word in text), "")

        table.table.move_to(RUNNING)
        await table.until(lambda: RUNNING in table.table.on_screen[0], "its row")
        # What the card has read: it is stalled, as its own screen says.
        await table.until(lambda: "no step for 3m" in line("Stalled") and "1.5100" in line("Stalled"), "a stalled job")
        # A job that failed is not done.
        await table.until(lambda: " 99 %" in line("✗ Failed") and "0.50719" in line("✗ Failed"), "an ended job")
        # A chart of the job at the cursor alone, where there is room.
        await table.until(lambda: card.has_class("-charted") and chart.display, "the chart")
        await table.until(lambda: chart.rule.right.plain == "1.5100", "its loss")
        assert chart.size.width + card.body.size.width <= card.size.width
        table.table.move_to(FAILED)
        await table.until(lambda: table.card_title().startswith("llama3-8b-sft-b7"), "the other job")
        await table.until(
            lambda: list(table.app.feed.activities._readers) in ([], [FAILED]), "the end of the first reader"
        )
        await table.resize(120, 40)
        await table.until(lambda: not card.has_class("-large"), "the facts alone")


def test_csv_tells_what_each_row_stands_for():
    """Values that are not finite, and buckets of several points."""
    series = Series("loss")
    for step in range(4_001):
        series.add(step, float("nan") if step == 0 else float(step), 10.0)
    file = io.StringIO()
    write_csv(file, [series])
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert list(rows[0].values()) == ["loss", "3", "10.000", "3.0", "1.0", "3.0", "4"]
    assert sum(int(row["points"]) for row in rows) == 4_001


async def test_succeeded_job_shows_its_final_chart(tmp_path):
    _, app = training(tmp_path, "", steps=41, state=AppState.SUCCEEDED)
    async with jobs_of(app) as table:
        job = await table.job()
        await job.until(lambda: job.screen.doing.display, "its chart")
        assert job.screen.doing.rule.title.plain == "Progress"
        assert not job.screen.why.display
        assert job.screen.focused is job.screen.doing.chart


@pytest.mark.parametrize(
    ("jobs", "names", "values"),
    [
        # However they are written; those that all jobs share are left out.
        (
            [{"arguments": text} for text in ("train.py --lr 0.1 --amp --seed=1 -3", "train.py --lr -0.2 --seed=2 -3")],
            ["lr", "amp", "seed"],
            [["0.1", "yes", "1"], ["-0.2", "", "2"]],
        ),
        (
            [{"component": "train.py", "arguments": "--lr 0.1", "swept": (("queue", "a"),)}, {"component": "train.py"}],
            ["lr", "queue"],
            [["0.1", "a"], ["default", "default"]],
        ),
    ],
    ids=["arguments", "a sweep and its defaults"],
)
def test_values_that_differ_have_names(jobs, names, values):
    rows = [JobRow(str(n), "local_cwd", str(n), AppState.RUNNING, **fields) for n, fields in enumerate(jobs)]
    assert swept_values(rows) == (names, values)
