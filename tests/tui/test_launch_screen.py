"""The Launch screen on a scheduler with canned answers: pick, fill, preview, submit, edit and launch again."""

import copy
import itertools
import threading
import time
from pathlib import Path

import pytest
from support.component_files import HEADER, ComponentFile, make_environment
from support.launching import LaunchingScheduler, launching_app
from support.screens import jobs_of, launch_of, text_of
from support.waiting import PATIENCE
from textual import events

from torchx_tui.backends.api import Finding
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.shared.progress import while_wanted
from torchx_tui.components.build import build_app
from torchx_tui.guest.settings import use_guest_settings
from torchx_tui.specs.errors import InvalidRunConfigException
from torchx_tui.specs.resource_names import get_named_resources
from torchx_tui.specs.roles import AppDryRunInfo
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import preview, session
from torchx_tui.tui.launch import work as launch_work
from torchx_tui.tui.launch.form_rows import FieldRow
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.dialog import AskDialog
from torchx_tui.tui.ui.keys_screen import bindings_of

JOB = '''
def job(data: str, lr: float = 0.1, flag: bool = False) -> AppDef:
    """Train [red]well[/red].

    Args:
        data: what is read
        lr: learning rate
        flag: whether
    """
    return AppDef("job", [Role("r", "", entrypoint="true", args=[data, str(lr)])])
'''
# A file that leaves a trace when it is run.
TRAP = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


@pytest.fixture
def scheduler():
    return LaunchingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    return launching_app(scheduler, tmp_path, monkeypatch)


@pytest.fixture
def component_file(app):
    return ComponentFile(Path("jobs.py"))


def launch_before(app, component, arguments, cfg=None):
    """Launch a component, as somebody did before the dashboard was started."""
    origin = LaunchOrigin(component, arguments)
    app.runner.run(build_app(component, arguments), "local_cwd", cfg or {}, origin=origin)
    return app.runner.journal.records()[0]


# Picking


async def test_fuzzy_search_picks_the_best_match(app):
    ComponentFile(Path("x.py")).write(JOB)
    async with launch_of(app) as launch:
        everything = len(launch.components())
        await launch.press("x")
        await launch.lists("x.py:job")
        await launch.press("ctrl+u", *"dtr", until=lambda: {"demo.train", "dist.torchrun"} <= set(launch.components()))
        assert len(launch.components()) < everything
        await launch.press(*"ain")
        await launch.lists("demo.train")
        await launch.shows("Pretend to train", on="docs")
        await launch.press("ctrl+u", *"zzzz", shows="No component matches", on="docs")
        await launch.press("enter")
        assert launch.screen.is_picking


async def test_form_names_the_python_of_a_component(app, component_file, tmp_path):
    python = make_environment(tmp_path / "env") / "bin" / "python"
    component_file.write(f"import no_such_library\n{JOB}")
    with use_guest_settings(python=str(python)):
        async with launch_of(app) as launch:
            await launch.pick("jobs.py:job")
            await launch.type(data="x")
            launch.editor.preview.show("dry run")
            await launch.shows("no_such_library", "component run by", on="preview")
            component_file.write(JOB)
            await launch.type(data="y")
            await launch.ready()
            assert "component run by" in launch.preview()


async def test_typing_does_not_repeat_slow_imports(app, component_file, tmp_path):
    imports = tmp_path / "imports"
    component_file.write(
        f"import time\nwith open({str(imports)!r}, 'a') as file: file.write('x')\ntime.sleep(1)\n{JOB}"
    )
    async with launch_of(app) as launch:
        await launch.pick("jobs.py:job")
        await launch.type(data="x")
        await launch.until(imports.exists, "the import")
        await launch.type(data="y")
        await launch.ready()
    assert imports.read_text() == "x"


async def test_arrows_choose_while_the_search_has_the_focus(app):
    async with launch_of(app) as launch:
        await launch.press("down", "down", "up")
        await launch.finds(launch.components()[1])
        assert launch.search_has_focus()


async def test_files_are_described_without_being_run(app, component_file):
    component_file.write(TRAP + HEADER.partition("\n")[2] + JOB, "")
    async with launch_of(app) as launch:
        assert "jobs.py:job" in launch.components()
        await launch.press(*"jobs.py")
        # Markup of a docstring is text.
        await launch.shows("what is read", "[red]well[/red]", on="docs")
        await launch.choose()
        assert "data is missing" in launch.words()
        assert not component_file.path.with_suffix(".ran").exists()


async def test_a_file_elsewhere_is_chosen_by_its_path(app):
    ComponentFile(Path("../elsewhere.py")).write(JOB)
    async with launch_of(app) as launch:
        await launch.choose(*"../elsewhere.py:job")
        assert launch.component() == "../elsewhere.py:job"


# Filling


async def test_form_has_every_field_and_the_focus_on_the_first(app):
    async with launch_of(app, "demo.train") as launch:
        names = [(row.field.section, row.field.name) for row in launch.form.rows]
        assert names[0] == ("argument", "steps")
        assert ("option", "log_dir") in names
        assert launch.at() == "steps"
        assert "number of training steps" in launch.help()
        assert launch.form.rule.info.plain == "demo.train"
        for size in ((120, 40), (80, 12)):
            # All fields at once, and some of them.
            await launch.resize(*size)
            for forth, back in (("tab", "shift+tab"), ("down", "up")):
                for key, field in ((forth, "num_replicas"), (back, "steps")):
                    await launch.press(key, until=lambda field=field: launch.at() == field, what=key)
        # The list of keys says the same of them.
        does = {row.what for row in bindings_of(launch.screen)["Form"]}
        assert does >= {"Next field", "Previous field", "Scroll a page up", "Scroll a page down"}
        launch.form.scheduler.focus()
        await launch.press("down", until=lambda: launch.at() == "log_dir", what="the field behind the scheduler")
        await launch.ready()


async def test_typing_replaces_the_value_of_an_entered_field(app):
    async with launch_of(app, "demo.train") as launch:
        await launch.press("7", "0", "tab", until=lambda: launch.at() == "num_replicas")
        await launch.press("4")
        await launch.has(num_replicas="4", steps="70")
        # A key that moves keeps the value, and goes on from there.
        await launch.press("shift+tab", "end", "5")
        await launch.has(steps="705")


async def test_a_letter_lays_out_nothing(app):
    async with launch_of(app, "utils.echo") as launch:
        await launch.type(msg="a")
        await launch.ready()
        await launch.settled()
        layouts = []
        launch.screen.screen_layout_refresh_signal.subscribe(launch.form, layouts.append, immediate=True)
        await launch.press("b", shows="--msg ab", on="preview")
        await launch.settled()
        assert layouts == []


async def test_another_schedulers_options_are_waited_for(app, scheduler, monkeypatch):
    answer, other, scheduler_of = threading.Event(), copy.copy(scheduler), app.runner.scheduler

    def run_opts():
        assert answer.wait(PATIENCE)
        return scheduler.run_opts()

    monkeypatch.setattr(other, "run_opts", run_opts)
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["local_cwd", "other"])
    monkeypatch.setattr(app.runner, "scheduler", lambda name: other if name == "other" else scheduler_of(name))
    async with launch_of(app, "demo.train") as launch:
        launch.form.scheduler.choices = ("local_cwd", "other")
        await launch.ready()
        launch.form.scheduler.focus()
        await launch.until(lambda: launch.form.scheduler.has_focus)
        await launch.press("space", "ctrl+s", shows="Not launched: the run options of other are not known yet")
        assert "ready" not in launch.words()
        assert scheduler.launched == []
        answer.set()
        await launch.until(lambda: "not known yet" not in launch.words(), "the other scheduler's options")
        assert launch.model.scheduler == "other"


def endless_dry_run(scheduler, replicas) -> tuple[threading.Event, threading.Event]:
    """Let dry runs of an app with this many replicas last until they are cancelled; return their start and end."""
    asked, given_up = threading.Event(), threading.Event()

    def endless(app, cfg):
        if app.roles[0].num_replicas == replicas:
            asked.set()
            end = time.monotonic() + 2 * PATIENCE
            try:
                for _ in while_wanted(itertools.count()):
                    assert time.monotonic() < end
                    time.sleep(0.01)
            finally:
                given_up.set()

    scheduler.refuse = endless
    return asked, given_up


async def test_a_dry_run_of_an_older_text_is_cancelled(app, scheduler):
    asked, given_up = endless_dry_run(scheduler, 9)
    async with launch_of(app, "demo.train") as launch:
        await launch.type(num_replicas="9")
        await launch.until(asked.is_set)
        await launch.type(num_replicas="3")
        await launch.until(given_up.is_set)
        await launch.ready()
        # So is that of a form that is left.
        given_up.clear()
        asked.clear()
        await launch.type(num_replicas="9")
        await launch.until(asked.is_set)
        await launch.press("escape", "escape", until=given_up.is_set)


async def test_a_huge_request_is_cut(app, scheduler, monkeypatch):
    text = "line\n" * 60_000
    monkeypatch.setattr(scheduler, "_submit_dryrun", lambda app, cfg: AppDryRunInfo(app, lambda _: text))
    async with launch_of(app, "demo.train") as launch:
        launch.editor.preview.show("dry run")
        await launch.shows("# 274,999 more characters", on="preview")
        assert launch.preview().count("line\n") == 5_000
        # So is a single line.
        text = "x" * 4_000_000
        await launch.type(num_replicas="9")
        await launch.shows("# 3,800,000 more characters", on="preview")
        assert launch.preview().count("x") == 200_000 + "torchx-tui".count("x")


async def test_an_error_of_the_backend_stands_at_its_field(app, scheduler):
    scheduler.refusal = InvalidRunConfigException("no such folder", "log_dir", {})
    async with launch_of(app, "demo.train") as launch:
        await launch.until(lambda: "no such folder" in launch.error("log_dir", "option"))
        await launch.refused("log_dir")
        assert scheduler.launched == []


async def test_warnings_of_the_backend_do_not_stop_a_launch(app, scheduler):
    scheduler.warnings = [Finding("warning", "port 29500 is taken", "choose [another] one")]
    async with launch_of(app, "demo.train") as launch:
        await launch.shows("port 29500 is taken", "choose [another] one", on="warnings")
        assert "ready" in launch.words()
        # What to do about each of several would push the others out of sight.
        more = [Finding("warning", "the disk is full", "empty it"), Finding("ok", "it fits")]
        scheduler.warnings = [*scheduler.warnings, *more]
        await launch.press("end", "0")
        noted = "! port 29500 is taken\n! the disk is full\nit fits"
        await launch.until(lambda: launch.warnings() == noted, "all of them")
        await launch.submit()
        assert len(scheduler.launched) == 1


async def test_the_preview_follows_the_form(app):
    async with launch_of(app, "utils.echo") as launch:
        await launch.ready()
        assert launch.preview().startswith("$ torchx-tui run --scheduler local_cwd utils.echo")
        launch.editor.preview.show("dry run")
        # A note about a request that has come already is not shown.
        launch.editor.show_slow("it waits")
        assert "it waits" not in launch.preview()
        await launch.type(msg="good morning")
        await launch.shows("echo 'good morning'", on="preview")
        await launch.press("ctrl+t")
        assert launch.tab() == "command"
        assert "--msg 'good morning'" in " ".join(launch.preview().split())
        await launch.press("ctrl+t")
        assert launch.tab() == "diff"
        assert "not been launched here before" in launch.preview()
        assert launch.tabs() == "Command   Diff   Dry run"
        launch.editor.preview.show("command")
        row = next(y for y, line in enumerate(launch.drawn().splitlines()) if "Dry run" in line)
        await launch.pilot.click(offset=(launch.drawn().splitlines()[row].index("Diff"), row))
        await launch.until(lambda: launch.tab() == "diff", "the tab")


async def test_a_change_draws_the_preview_once(app, monkeypatch):
    drawn, make = [], preview.request_text
    count = lambda *inputs: drawn.append(inputs) or make(*inputs)  # noqa: E731
    monkeypatch.setattr(preview, "request_text", count)
    async with launch_of(app, "utils.echo") as launch:
        await launch.ready()
        await launch.settled()
        launch.editor.preview.show("dry run")
        drawn.clear()
        launch.set("msg", "good")
        await launch.shows("echo good", on="preview")
        await launch.settled()
        assert len(drawn) == 1


async def test_the_scheduler_field_shows_its_focus(app, monkeypatch):
    monkeypatch.setattr(session, "why_unusable", lambda _: {"kubernetes": "no [red] cluster"})
    async with launch_of(app, "utils.echo") as launch:
        assert " scheduler" in launch.drawn()
        await launch.press(*["tab"] * 3, until=lambda: "▌scheduler" in launch.drawn())
        assert text_of(launch.form.scheduler) == "(●) local  "
        await launch.until(lambda: launch.help().endswith("\nkubernetes: no [red] cluster"), "why not")
        await launch.press("tab", until=lambda: "▌scheduler" not in launch.drawn())
        await launch.ready()
        launch.form.submit.focus()
        await launch.press("down", until=lambda: launch.focused() is launch.editor.preview.body, what="the preview")


# Going back


async def test_escape_goes_back_a_step_at_a_time(app, scheduler):
    async with launch_of(app, "demo.train") as launch:
        await launch.type(steps="7")
        # The request stands beside the form: there is nothing to close.
        await launch.press("ctrl+d", "escape", until=lambda: launch.screen.is_picking)
        assert launch.search_has_focus()
        assert app.screen is launch.screen
        await launch.until(lambda: "enter Choose" in launch.key_hints(), "the picker's keys")
        assert launch.message() == launch.screen.picker.summary().plain
        # The search goes on with what was typed before.
        await launch.press("x", until=lambda: launch.search() == "demo.trainx")
        # Nothing is left to submit.
        await launch.open(JobsScreen, "ctrl+s", "escape")
        assert (scheduler.launched, app.runner.journal.records()) == ([], [])


# Submitting


async def test_submit_launches_and_the_table_has_the_job(app, scheduler):
    async with launch_of(app, "demo.train") as launch:
        await launch.type(num_replicas="3")
        await launch.type("option", log_dir="/logs")
        table = await launch.submit()
        assert [app.roles[0].num_replicas for app in scheduler.launched] == [3]
        assert table.at() == "demo-train-1"
        assert "Launched demo-train-1" in table.message()
        record = app.runner.journal.records()[0]
        launched = ("demo.train", {"num_replicas": "3"}, {"log_dir": "/logs"})
        assert (record.component, record.arguments, record.cfg) == launched


async def test_ctrl_s_twice_launches_once(app, scheduler):
    async with launch_of(app, "utils.echo") as launch:
        await launch.ready()
        await launch.open(JobsScreen, "ctrl+s", "ctrl+s", "ctrl+s")
        assert len(scheduler.launched) == 1


async def test_a_launch_that_fails_keeps_the_form(app, scheduler, monkeypatch):
    def refuse(_info):
        raise OSError("the disk [red] is full")

    async with launch_of(app, "utils.echo") as launch:
        await launch.type(msg="kept")
        await launch.ready()
        monkeypatch.setattr(scheduler, "schedule", refuse)
        await launch.refused("the disk [red] is full")
        assert app.screen is launch.screen
        assert launch.value("msg") == "kept"
        assert "the disk [red] is full" in launch.warnings()
        # The next attempt is possible at once the reason is gone.
        monkeypatch.undo()
        await launch.type(msg="kept again")
        await launch.ready()
        await launch.submit()
        assert len(scheduler.launched) == 1


# Again


async def test_relaunch_keeps_values_and_shows_the_difference(app, scheduler, component_file):
    component_file.write(JOB)
    arguments = {"data": "a corpus, 'quoted'", "lr": "0.5", "flag": "true"}
    cfg = {"log_dir": "/logs", "prepend_cwd": True}
    first = launch_before(app, component_file.name("job"), arguments, cfg)
    async with jobs_of(app) as table:
        launch = await table.edit()
        assert launch.fields("last run") == {**arguments, "log_dir": "/logs", "prepend_cwd": "true"}
        assert launch.value("data") == arguments["data"]
        await launch.type(lr="0.25")
        await launch.ready()
        await launch.press("ctrl+t")
        assert launch.preview() == "lr\n  - 0.5\n  + 0.25\n"
        await launch.submit()
        second = app.runner.journal.records()[0]
        edited = (first.id, {**arguments, "lr": "0.25"}, cfg)
        assert (second.relaunch_of, second.arguments, second.cfg) == edited
        assert scheduler.launched[1].roles[0].args == ["a corpus, 'quoted'", "0.25"]


async def test_escape_from_an_edit_goes_to_the_jobs(app, scheduler):
    launch_before(app, "utils.echo", {"msg": "hi"})
    async with jobs_of(app) as table:
        asked, given_up = endless_dry_run(scheduler, 1)
        await table.press("e", until=asked.is_set, what="the form")
        await table.back("escape")
        assert len(scheduler.launched) == 1
        await table.until(given_up.is_set, "the end of the dry run")


async def test_a_form_starts_from_its_last_launch_that_was_not_refused(app):
    launch_before(app, "utils.echo", {"msg": "hi"})
    record = app.runner.journal.record_intent(
        build_app("utils.echo", {}), "local_cwd", "torchx", {}, origin=LaunchOrigin("utils.echo", {"msg": "refused"})
    )
    app.runner.journal.update(record, error="the disk is full")
    async with launch_of(app, "utils.echo") as launch:
        assert launch.value("msg") == "hi"
        await launch.press("ctrl+t")
        assert launch.preview() == "Same as the last launch"


async def test_an_argument_that_is_gone_is_named(app, component_file):
    component_file.write(JOB)
    launch_before(app, component_file.name("job"), {"data": "x", "lr": "0.5"})
    component_file.write(JOB.replace("lr: float", "rate: float").replace("str(lr)", "str(rate)"))
    async with jobs_of(app) as table:
        await table.edit()
        await table.shows("jobs.py:job no longer has lr: the value is left out")


async def test_quitting_a_form_with_typed_values_asks(app):
    async with launch_of(app, "utils.echo") as launch:
        await launch.type(msg="half")
        await launch.dialog(AskDialog, "ctrl+q")
        assert "What you typed into the form is not kept." in launch.dialog_text()
        await launch.back("escape")
        assert launch.value("msg") == "half"
        await launch.dialog(AskDialog, "ctrl+q")
        await launch.press("y", until=lambda: app.return_code == 0, what="the end")


# Widths


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
async def test_the_preview_covers_a_narrow_form(app, scheduler, size):
    async with launch_of(app, "utils.echo", size) as launch:
        await launch.ready()
        shown = launch.editor.preview
        assert not shown.region
        for key, tab in (("ctrl+t", "diff"), ("ctrl+t", "dry run"), ("ctrl+t", "command"), ("ctrl+d", "dry run")):
            await launch.press(key, until=lambda tab=tab: shown.region and shown.tab == tab, what=tab)
            assert not launch.form.region
        await launch.press("escape", until=lambda: launch.form.region and not shown.region, what="the form")
        assert not launch.screen.is_picking
        # The key that shows the request hides it.
        await launch.press("ctrl+d", until=lambda: shown.region, what="the request")
        await launch.press("ctrl+d", until=lambda: launch.form.region, what="the form again")
        assert launch.at() == "msg"
        await launch.submit()
        assert len(scheduler.launched) == 1


async def test_ctrl_s_shows_a_wrong_field_behind_the_preview(app):
    async with launch_of(app, "demo.train", (80, 24)) as launch:
        await launch.type(steps="many")
        await launch.until(lambda: launch.words() == "1 error, in steps   ctrl+s goes there", "the error")
        await launch.press("ctrl+t", until=lambda: launch.editor.preview.region, what="the preview")
        await launch.press(
            "ctrl+s", until=lambda: launch.at() == "steps" and launch.row("steps").region, what="the field"
        )


async def test_letters_typed_just_before_ctrl_s_are_launched(app, scheduler):
    """The key of the screen is handled before the field has taken the letters that were sent before it."""
    async with launch_of(app, "utils.echo") as launch:
        await launch.type(msg="start")
        await launch.ready()
        for letter in " and the rest of it":
            app.post_message(events.Key("space" if letter == " " else letter, letter))
        app.post_message(events.Key("ctrl+s", None))
        await launch.until(lambda: len(scheduler.launched) == 1)
        assert app.runner.journal.records()[0].arguments["msg"] == "start and the rest of it"


async def test_no_named_resource_is_made_on_the_event_loop(app, monkeypatch):
    goes_on, asked = threading.Event(), []

    def slow(name):
        asked.append(threading.current_thread())
        goes_on.wait(PATIENCE)
        return get_named_resources(name)

    monkeypatch.setattr(launch_work, "get_named_resources", slow)
    async with launch_of(app, "dist.torchrun") as launch:
        launch.row("h").input.focus()
        await launch.press(*"gpu.small")
        try:
            # The last letter is in its field although the first one's resource is still being made.
            await launch.until(lambda: launch.field("h").text == "gpu.small" and asked)
            assert threading.main_thread() not in asked
        finally:
            goes_on.set()
        await launch.until(lambda: launch.field("memMB").from_other == ("32768", "h"), "its memory")
        await launch.shows("32768", on="drawn")


async def test_the_last_valid_request_stays_under_a_fault(app):
    async with launch_of(app, "demo.train") as launch:
        launch.editor.preview.show("dry run")
        await launch.shows("--steps", on="preview")
        launch.set("steps", "1x")
        await launch.shows("steps: `1x` is not a whole number", on="preview")
        above, _, below = launch.preview().partition("The last valid request:")
        assert "--steps" not in above
        assert "--steps" in below
        launch.set("steps", "1")
        await launch.ready()
        assert launch.error("steps") == ""


async def test_the_field_with_the_focus_stays_in_sight(app, scheduler):
    """Warnings that come while somebody types take rows from the fields."""
    async with launch_of(app, "demo.train", (80, 20)) as launch:
        fields = launch.form.query_one("#form-scroll")
        row = launch.row("log_dir", "option")
        row.input.focus()
        await launch.until(lambda: fields.region.contains_region(row.region), "the field")
        height = fields.size.height
        scheduler.warnings = [Finding("warning", f"{number} is odd", "look at it") for number in range(3)]
        await launch.press("x", until=lambda: fields.size.height < height, what="the warnings")
        await launch.until(lambda: fields.region.contains_region(row.region), "the field again")


class RowThatPressesTab(FieldRow):
    """A row that moves the focus before it has its place on the screen."""

    def on_mount(self) -> None:
        self.screen.focus_next()


async def test_tab_leads_to_the_next_field_while_rows_come(app):
    async with launch_of(app, "demo.train", (80, 20)) as launch:
        names = [row.field.name for row in launch.form.rows]
        first, second = launch.row(names[0]), launch.row(names[1])
        await launch.until(lambda: first.input.has_focus, "the first field")
        await first.parent.mount(RowThatPressesTab(first.field))
        await launch.until(lambda: second.input.has_focus, "the second field")


async def test_letters_typed_while_a_form_opens_are_for_its_first_field(app, hold):
    async with launch_of(app) as launch:
        launch.set_search("utils.echo")
        await launch.finds("utils.echo")
        held = hold(app.runner, "scheduler_names")
        await launch.press("enter", *"sh", "enter")
        assert launch.highlighted() == "utils.echo"
        held.go.set()
        await launch.opened()
        await launch.has(msg="sh")
        assert (launch.component(), launch.search()) == ("utils.echo", "utils.echo")


async def test_keys_typed_before_the_form_reach_no_list(app, hold):
    launch_before(app, "utils.echo", {"msg": "hi"})
    async with jobs_of(app) as table:
        held = hold(app.runner, "scheduler_names")
        screen = await table.open(LaunchScreen, "e")
        await table.press(*"echo")
        assert (screen.picker.search.value, screen.is_picking) == ("", False)
        held.go.set()
        await table.until(lambda: screen.editor.form.rows, "the form")
