"""The Launch screen on a scheduler with canned answers: pick, fill, preview, submit, edit and launch again."""

import copy
import itertools
import threading
import time

import pytest
from support.component_files import HEADER, ComponentFile
from support.dashboard import key_bar, screen_text, until
from support.launching import (
    LaunchingScheduler,
    drawn,
    field_with_focus,
    form_of,
    launching_app,
    model_of,
    opened,
    preview,
    ready,
    row_of,
    status,
    text_in,
    type_into,
    words,
)
from support.waiting import PATIENCE
from textual import events
from textual.widgets import Input

from torchx_tui.backends.api import Finding
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.shared.progress import while_wanted
from torchx_tui.components import build_app
from torchx_tui.specs import AppDryRunInfo, InvalidRunConfigException, get_named_resources
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import form_editor
from torchx_tui.tui.launch import work as launch_work
from torchx_tui.tui.launch.messages import DryRunSlow
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.bars import StatusLine
from torchx_tui.tui.ui.choice_field import ChoiceField
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
def component_file(app, tmp_path):
    return ComponentFile(tmp_path / "here" / "jobs.py")


# Picking


async def test_the_best_match_is_picked_by_fuzzy_search(app, tmp_path):
    ComponentFile(tmp_path / "here" / "x.py").write(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        everything = len(screen.chooser.picker.shown)
        await pilot.press("x")
        await until(pilot, lambda: [one.name for one in screen.chooser.picker.shown] == ["x.py:job"])
        await pilot.press("ctrl+u", *"dtr")
        both = {"demo.train", "dist.torchrun"}
        await until(pilot, lambda: both <= {one.name for one in screen.chooser.picker.shown})
        assert len(screen.chooser.picker.shown) < everything
        await pilot.press(*"ain")
        await until(pilot, lambda: [one.name for one in screen.chooser.picker.shown] == ["demo.train"])
        await until(pilot, lambda: "Pretend to train" in str(screen.chooser.docs._content.render()))
        await pilot.press("ctrl+u", *"zzzz")
        await until(pilot, lambda: "No component matches" in str(screen.chooser.docs._content.render()))
        await pilot.press("enter")
        assert screen.is_picking


async def test_the_arrows_choose_while_the_search_has_the_focus(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press("down", "down", "up")
        await until(pilot, lambda: screen.chooser.picker.highlighted is screen.chooser.picker.components[1])
        assert screen.chooser.picker.search.has_focus


async def test_files_of_this_folder_are_listed_and_described_without_being_run(app, component_file):
    component_file.write(TRAP + HEADER.partition("\n")[2] + JOB, "")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert "jobs.py:job" in [one.name for one in screen.chooser.picker.components]
        await pilot.press(*"jobs.py")
        await until(pilot, lambda: "what is read" in str(screen.chooser.docs._content.render()))
        # Markup of a docstring is text.
        assert "[red]well[/red]" in str(screen.chooser.docs._content.render())
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows)
        assert "data is missing" in words(screen)
        assert not component_file.path.with_suffix(".ran").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def job() -> AppDef:\n  return AppDef(\n", "never closed"),
        ("def job(x) -> AppDef:\n    return AppDef('x', [])\n", "x"),
    ],
    ids=["syntax", "lint"],
)
async def test_a_component_that_cannot_be_used_says_why(app, component_file, text, reason):
    component_file.write(text)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: "1 component cannot be used" in screen.query_one(StatusLine).right.plain)
        await pilot.press(*"jobs.py")
        await until(pilot, lambda: "This component cannot be used" in str(screen.chooser.docs._content.render()))
        assert reason in str(screen.chooser.docs._content.render())
        assert str(screen.chooser.docs._content.render()).endswith("ctrl+e open the file in your editor\n")
        await pilot.press("enter")
        await until(pilot, lambda: reason in status(screen))
        assert screen.is_picking
        assert screen.editor.model is None


async def test_a_file_elsewhere_is_chosen_by_its_path(app, tmp_path):
    ComponentFile(tmp_path / "elsewhere.py").write(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"../elsewhere.py:job", "enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows)
        assert model_of(screen).doc.name == "../elsewhere.py:job"
        await pilot.press("escape")
        await until(pilot, lambda: screen.is_picking)
        await pilot.press("ctrl+u", *"/x.py:job", "enter")
        await until(pilot, lambda: "there is no file" in status(screen))


# Filling


async def test_the_form_has_every_field_and_the_focus_on_the_first(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        names = [(row.field.section, row.field.name) for row in screen.editor.form.rows]
        assert names[0] == ("argument", "steps")
        assert ("option", "log_dir") in names
        assert field_with_focus(screen) == "steps"
        assert "number of training steps" in drawn(screen, "#field-help")
        assert screen.editor.form.rule.info.plain == "demo.train"
        for size in ((120, 40), (80, 12)):
            # All fields at once, and some of them.
            await pilot.resize_terminal(*size)
            for forth, back in (("tab", "shift+tab"), ("down", "up")):
                await pilot.press(forth)
                await until(pilot, lambda: field_with_focus(screen) == "num_replicas", f"{forth} at {size}")
                await pilot.press(back)
                await until(pilot, lambda: field_with_focus(screen) == "steps", f"{back} at {size}")
        # The list of keys says the same of them.
        does = {row.what for row in bindings_of(screen)["Form"]}
        assert does >= {"Next field", "Previous field", "Scroll a page up", "Scroll a page down"}
        screen.editor.form.scheduler.focus()
        await pilot.press("down")
        await until(pilot, lambda: field_with_focus(screen) == "log_dir", "the field behind the scheduler")
        await ready(pilot, screen)


async def test_typing_over_a_field_that_was_entered_replaces_its_value(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await pilot.press("7", "0", "tab")
        await until(pilot, lambda: field_with_focus(screen) == "num_replicas")
        await pilot.press("4")
        await until(pilot, lambda: text_in(screen, "num_replicas") == "4", "the new value alone")
        assert text_in(screen, "steps") == "70"
        # A key that moves keeps the value, and goes on from there.
        await pilot.press("shift+tab", "end", "5")
        await until(pilot, lambda: text_in(screen, "steps") == "705")


async def test_nothing_is_launched_with_the_options_of_the_scheduler_before(app, scheduler, monkeypatch):
    answer, other, scheduler_of = threading.Event(), copy.copy(scheduler), app.runner.scheduler

    def run_opts():
        assert answer.wait(PATIENCE)
        return scheduler.run_opts()

    monkeypatch.setattr(other, "run_opts", run_opts)
    monkeypatch.setattr(app.runner, "scheduler_names", lambda: ["local_cwd", "other"])
    monkeypatch.setattr(app.runner, "scheduler", lambda name: other if name == "other" else scheduler_of(name))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        screen.editor.form.scheduler.choices = ("local_cwd", "other")
        await ready(pilot, screen)
        screen.editor.form.scheduler.focus()
        await until(pilot, lambda: screen.editor.form.scheduler.has_focus)
        await pilot.press("space", "ctrl+s")
        await until(pilot, lambda: "not launched: the run options of other are not known yet" in status(screen))
        assert "ready" not in words(screen)
        assert scheduler.launched == []
        answer.set()
        await until(pilot, lambda: "not known yet" not in words(screen), "the other scheduler's options")
        assert model_of(screen).scheduler == "other"


def endless_dry_run(scheduler, replicas) -> tuple[threading.Event, threading.Event]:
    """Let each dry run of so many replicas go on until it is given up; tell when it was asked for, and given up."""
    asked, given_up = threading.Event(), threading.Event()

    def endless(app, cfg):
        if app.roles[0].num_replicas == replicas:
            asked.set()
            end = time.monotonic() + 2 * PATIENCE
            try:
                for _ in while_wanted(itertools.count()):
                    assert time.monotonic() < end
            finally:
                given_up.set()

    scheduler.refuse = endless
    return asked, given_up


async def test_a_dry_run_of_what_was_typed_before_is_given_up(app, scheduler):
    asked, given_up = endless_dry_run(scheduler, 9)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await type_into(pilot, screen, "num_replicas", "9")
        await until(pilot, asked.is_set)
        await type_into(pilot, screen, "num_replicas", "3")
        await until(pilot, given_up.is_set)
        await ready(pilot, screen)
        # So is that of a form that is left.
        given_up.clear()
        asked.clear()
        await type_into(pilot, screen, "num_replicas", "9")
        await until(pilot, asked.is_set)
        await pilot.press("escape", "escape")
        await until(pilot, given_up.is_set)


async def test_a_request_that_nobody_reads_to_its_end_is_cut(app, scheduler, monkeypatch):
    text = "line\n" * 60_000
    monkeypatch.setattr(scheduler, "_submit_dryrun", lambda app, cfg: AppDryRunInfo(app, lambda _: text))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await until(pilot, lambda: "# 274,999 more characters: `torchx-tui dryrun` prints all" in preview(screen))
        assert preview(screen).count("line\n") == 5_000
        # So is a single line.
        text = "x" * 4_000_000
        await type_into(pilot, screen, "num_replicas", "9")
        await until(pilot, lambda: "# 3,800,000 more characters" in preview(screen))
        assert "x" * 200_000 in preview(screen)
        assert "x" * 200_001 not in preview(screen)


async def test_an_error_stands_at_its_field_while_typing_and_nothing_is_launched(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await ready(pilot, screen)
        await type_into(pilot, screen, "steps", "1x")
        row = row_of(screen, "steps")
        await until(pilot, lambda: row._error.display)
        assert "`1x` is not a whole number" in str(row._error.render())
        assert "1 error, in steps" in words(screen)
        # The last request stays, and says from when it is.
        assert "steps: `1x` is not a whole number" in preview(screen)
        assert "command:" in preview(screen)
        row_of(screen, "fail_rank").input.focus()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: steps" in status(screen))
        assert field_with_focus(screen) == "steps"
        assert row.input.value == "1x"
        assert scheduler.launched == []
        assert app.runner.journal.records() == []
        await pilot.press("end", "backspace")
        await ready(pilot, screen)
        assert not row._error.display


async def test_what_is_missing_is_said_and_ctrl_s_goes_there(app, scheduler, component_file):
    component_file.write(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "jobs.py:job")
        assert field_with_focus(screen) == "data"
        assert "data is missing" in words(screen)
        assert preview(screen) == "data: required\n"
        await pilot.press("ctrl+t", "ctrl+t")
        assert (screen.editor.preview.tab, preview(screen)) == ("command", "")
        await pilot.press("tab", "ctrl+s")
        await until(pilot, lambda: "not launched: data" in status(screen))
        assert field_with_focus(screen) == "data"
        assert scheduler.launched == []


async def test_what_the_backend_refuses_stands_at_its_field(app, scheduler):
    scheduler.refusal = InvalidRunConfigException("no such folder", "log_dir", {})
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        row = row_of(screen, "log_dir", "option")
        await until(pilot, lambda: row._error.display)
        assert "no such folder" in str(row._error.render())
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: log_dir" in status(screen))
        assert scheduler.launched == []


async def test_warnings_of_the_backend_do_not_stop_a_launch(app, scheduler):
    scheduler.warnings = [Finding("warning", "port 29500 is taken", "choose [another] one")]
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await until(pilot, lambda: "port 29500 is taken" in drawn(screen, "#form-warnings"))
        assert "choose [another] one" in drawn(screen, "#form-warnings")
        assert "ready" in words(screen)
        # What to do about each of several would push the others out of sight.
        more = [Finding("warning", "the disk is full", "empty it"), Finding("ok", "it fits")]
        scheduler.warnings = [*scheduler.warnings, *more]
        await pilot.press("end", "0")
        noted = "! port 29500 is taken\n! the disk is full\nit fits"
        await until(pilot, lambda: drawn(screen, "#form-warnings") == noted, "all of them")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(scheduler.launched) == 1)


async def test_the_preview_follows_what_is_typed(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await ready(pilot, screen)
        # What comes late of a request that is there already says nothing any more.
        screen.editor.on_dry_run_slow(DryRunSlow(screen.editor.dry_run.generation, "it waits"))
        assert "it waits" not in preview(screen)
        await type_into(pilot, screen, "msg", "good morning")
        await until(pilot, lambda: "echo 'good morning'" in preview(screen), "the new request")
        await pilot.press("ctrl+t")
        assert screen.editor.preview.tab == "diff"
        assert "not been launched here before" in preview(screen)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "--msg 'good morning'" in preview(screen))
        assert preview(screen).startswith("$ torchx-tui run --scheduler local_cwd utils.echo")
        assert screen.editor.preview.rule.title.plain == "Dry run   Diff   Command"


async def test_a_choice_is_turned_with_the_arrows(app, component_file):
    component_file.write(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "jobs.py:job")
        await type_into(pilot, screen, "data", "corpus")
        choice = row_of(screen, "flag").input
        assert isinstance(choice, ChoiceField)
        choice.focus()
        await pilot.press("right")
        await until(pilot, lambda: model_of(screen).plan().arguments == {"data": "corpus", "flag": "true"})


async def test_the_scheduler_shows_that_it_has_the_focus_and_which_cannot_be_used(app, monkeypatch):
    monkeypatch.setattr(form_editor, "why_unusable", lambda _: {"kubernetes": "no [red] cluster"})
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        label = screen.editor.form._scheduler_label
        assert str(label.render()) == " scheduler"
        await pilot.press(*["tab"] * 3)
        await until(pilot, lambda: screen.editor.form.scheduler.has_focus)
        assert str(label.render()) == "▌scheduler"
        assert screen.editor.form._help_rule.info.plain == "local"
        assert screen.editor.form.scheduler.render().plain == "(●) local  "
        await until(pilot, lambda: drawn(screen, "#field-help").endswith("\nkubernetes: no [red] cluster"), "why not")
        await pilot.press("tab")
        await until(pilot, lambda: str(label.render()) == " scheduler")
        await ready(pilot, screen)
        screen.editor.form.submit.focus()
        await until(pilot, lambda: screen.editor.form._help_rule.info.plain == "", "no help")
        await pilot.press("down")
        await until(pilot, lambda: screen.focused is screen.editor.preview.body, "what stands behind Submit")


# Going back


async def test_escape_goes_back_a_step_at_a_time_and_launches_nothing(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await type_into(pilot, screen, "steps", "7")
        # The request stands beside the form: there is nothing to close.
        await pilot.press("ctrl+d", "escape")
        await until(pilot, lambda: screen.is_picking)
        assert screen.chooser.picker.search.has_focus
        assert app.screen is screen
        await until(pilot, lambda: "enter Choose" in key_bar(app), "the picker's keys")
        assert status(screen) == screen.chooser.summary().plain
        # The search goes on with what was typed before.
        await pilot.press("x")
        await until(pilot, lambda: screen.chooser.picker.search.value == "demo.trainx")
        # Nothing is left to submit.
        await pilot.press("ctrl+s", "escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert scheduler.launched == []
        assert app.runner.journal.records() == []


# Submitting


async def test_submit_launches_what_the_form_says_and_the_table_has_it_at_once(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await type_into(pilot, screen, "num_replicas", "3")
        await type_into(pilot, screen, "log_dir", "/logs", "option")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert [app.roles[0].num_replicas for app in scheduler.launched] == [3]
        table = app.screen.table
        assert table.cursor_row.app_id == "demo-train-1"
        assert "Launched demo-train-1" in status(app.screen)
        record = app.runner.journal.records()[0]
        assert (record.component, record.arguments, record.cfg) == (
            "demo.train",
            {"num_replicas": "3"},
            {"log_dir": "/logs"},
        )


async def test_ctrl_s_twice_launches_once(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await ready(pilot, screen)
        await pilot.press("ctrl+s", "ctrl+s", "ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert len(scheduler.launched) == 1


async def test_a_launch_that_fails_keeps_the_form(app, scheduler, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await type_into(pilot, screen, "msg", "kept")
        await ready(pilot, screen)

        def refuse(_info):
            raise OSError("the disk [red] is full")

        monkeypatch.setattr(scheduler, "schedule", refuse)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not launched: the disk [red] is full" in status(screen))
        assert app.screen is screen
        assert text_in(screen, "msg") == "kept"
        assert "the disk [red] is full" in drawn(screen, "#form-warnings")
        # The next attempt is possible at once the reason is gone.
        monkeypatch.undo()
        await type_into(pilot, screen, "msg", "kept again")
        await ready(pilot, screen)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(scheduler.launched) == 1)


# Again


async def test_edit_and_relaunch_keeps_every_value_and_shows_the_difference(app, scheduler, component_file):
    component_file.write(JOB)
    arguments = {"data": "a corpus, 'quoted'", "lr": "0.5", "flag": "true"}
    cfg = {"log_dir": "/logs", "prepend_cwd": True}
    app.runner.run(
        build_app(component_file.name("job"), arguments),
        "local_cwd",
        cfg,
        origin=LaunchOrigin(component_file.name("job"), arguments),
    )
    first = app.runner.journal.records()[0]
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.form.rows, "the form")
        screen = app.screen
        shown = {row.field.name: row.field.text for row in screen.editor.form.rows if row.field.origin == "last run"}
        assert shown == {**arguments, "log_dir": "/logs", "prepend_cwd": "true"}
        inputs = {row.field.name: row.input.value for row in screen.editor.form.rows if isinstance(row.input, Input)}
        assert inputs["data"] == arguments["data"]
        await type_into(pilot, screen, "lr", "0.25")
        await ready(pilot, screen)
        await pilot.press("ctrl+t")
        assert preview(screen) == "lr\n  - 0.5\n  + 0.25\n"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(scheduler.launched) == 2)
        second = app.runner.journal.records()[0]
        assert second.relaunch_of == first.id
        assert second.arguments == {**arguments, "lr": "0.25"}
        assert second.cfg == cfg
        assert scheduler.launched[1].roles[0].args == ["a corpus, 'quoted'", "0.25"]


async def test_escape_from_an_edit_goes_to_the_jobs_and_launches_nothing(app, scheduler):
    app.runner.run(build_app("utils.echo", {"msg": "hi"}), "local_cwd", {}, origin=LaunchOrigin("utils.echo"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.cursor_row, "the job")
        asked, given_up = endless_dry_run(scheduler, 1)
        await pilot.press("e")
        await until(pilot, asked.is_set, "the form")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert len(scheduler.launched) == 1
        await until(pilot, given_up.is_set, "the end of the dry run")


async def test_a_new_form_starts_from_the_last_launch_of_its_component(app):
    app.runner.run(
        build_app("utils.echo", {"msg": "hi"}), "local_cwd", {}, origin=LaunchOrigin("utils.echo", {"msg": "hi"})
    )
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        assert text_in(screen, "msg") == "hi"
        await pilot.press("ctrl+t")
        assert preview(screen) == "Same as the last launch"


# Widths


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (200, 50)])
async def test_every_width_launches(app, scheduler, size):
    async with app.run_test(size=size) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await type_into(pilot, screen, "msg", "hello")
        await ready(pilot, screen)
        if size[0] < 120:
            assert not screen.editor.preview.display or not screen.editor.preview.region
            await pilot.press("ctrl+d")
            await until(pilot, lambda: screen.editor.preview.region)
            assert not screen.editor.form.region
            await pilot.press("escape")
            await until(pilot, lambda: screen.editor.form.region)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(scheduler.launched) == 1)


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
async def test_ctrl_t_opens_the_preview_over_a_narrow_form(app, size):
    async with app.run_test(size=size) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await ready(pilot, screen)
        shown = screen.editor.preview
        for key, tab in (("ctrl+t", "diff"), ("ctrl+t", "command"), ("ctrl+d", "dry run"), ("ctrl+t", "diff")):
            await pilot.press(key)
            await until(pilot, lambda tab=tab: shown.region and shown.tab == tab, tab)
            assert not screen.editor.form.region
        await pilot.press("escape")
        await until(pilot, lambda: screen.editor.form.region and not shown.region, "the form")
        assert not screen.is_picking
        # The key that shows the request hides it.
        await pilot.press("ctrl+d")
        await until(pilot, lambda: shown.region, "the request")
        await pilot.press("ctrl+d")
        await until(pilot, lambda: screen.editor.form.region, "the form again")
        assert screen.focused is row_of(screen, "msg").input


async def test_ctrl_s_shows_a_wrong_field_behind_the_preview(app):
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await type_into(pilot, screen, "steps", "many")
        await until(
            pilot, lambda: drawn(screen, "#submit-words") == "1 error, in steps   ctrl+s goes there", "the error"
        )
        await pilot.press("ctrl+t")
        await until(pilot, lambda: screen.editor.preview.region, "the preview")
        await pilot.press("ctrl+s")
        field = row_of(screen, "steps").input
        await until(pilot, lambda: screen.focused is field and field.region, "the field")


async def test_letters_typed_just_before_ctrl_s_are_launched_too(app, scheduler):
    """The key of the screen is carried out before the field has taken the letters that were sent before it."""
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "utils.echo")
        await type_into(pilot, screen, "msg", "start")
        await ready(pilot, screen)
        for letter in " and the rest of it":
            app.post_message(events.Key("space" if letter == " " else letter, letter))
        app.post_message(events.Key("ctrl+s", None))
        await until(pilot, lambda: len(scheduler.launched) == 1)
        assert app.runner.journal.records()[0].arguments["msg"] == "start and the rest of it"


async def test_no_named_resource_is_made_on_the_event_loop(app, monkeypatch):
    goes_on, asked = threading.Event(), []

    def slow(name):
        asked.append((name, threading.current_thread()))
        goes_on.wait(PATIENCE)
        return get_named_resources(name)

    monkeypatch.setattr(launch_work, "get_named_resources", slow)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "dist.torchrun")
        row = row_of(screen, "h")
        row.input.focus()
        await pilot.press(*"gpu.small")
        try:
            # The last letter is in its field although the first one's resource is still being made.
            await until(pilot, lambda: row_of(screen, "h").field.text == "gpu.small" and asked)
            assert threading.main_thread() not in [thread for _, thread in asked]
        finally:
            goes_on.set()
        await until(pilot, lambda: row_of(screen, "memMB").field.from_other == ("32768", "h"), "its memory")
        await until(pilot, lambda: "32768" in screen_text(app), "the memory on the screen")


async def test_a_missing_value_is_called_required(app, component_file):
    component_file.write("def job(data: str) -> AppDef:\n    return AppDef('x', [Role('r', '', entrypoint='true')])\n")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "jobs.py:job")
        row = row_of(screen, "data")
        assert str(row._origin.render()) == "required"
        await pilot.press("d")
        await until(pilot, lambda: str(row._origin.render()) == "typed")


async def test_the_last_valid_request_stays_under_a_fault(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        await until(pilot, lambda: "--steps" in preview(screen), "the request")
        row_of(screen, "steps").input.value = "1x"
        await until(pilot, lambda: "steps: `1x` is not a whole number" in preview(screen), "the fault")
        above, _, below = preview(screen).partition("The last valid request:")
        assert "--steps" not in above
        assert "--steps" in below


async def test_the_field_with_the_focus_stays_in_sight(app, scheduler):
    """Warnings that come while somebody types take rows from the fields."""
    async with app.run_test(size=(80, 20)) as pilot:
        screen = await form_of(pilot, app, "demo.train")
        form = screen.editor.form
        fields = form.query_one("#form-scroll")
        row = row_of(screen, "log_dir", "option")
        row.input.focus()
        await until(pilot, lambda: fields.region.contains_region(row.region), "the field")
        height = fields.size.height
        scheduler.warnings = [Finding("warning", f"{number} is odd", "look at it") for number in range(3)]
        await pilot.press("x")
        await until(pilot, lambda: fields.size.height < height, "the warnings")
        await until(pilot, lambda: fields.region.contains_region(row.region), "the field again")
