"""The picker: order, pins, files of other folders, findings, and lists that grow while they are read."""

import itertools
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.style import Style
from support.canned import DAY, HOUR, MINUTE, CannedScheduler
from support.component_files import HEADER, ComponentFile
from support.dashboard import key_bar, make_app, settled, until
from support.launching import opened
from support.past_launches import launched
from support.waiting import PATIENCE
from textual import events

from torchx_tui.backends.history.launch_record import LaunchRecord
from torchx_tui.components import ComponentSummary, list_components
from torchx_tui.settings.config import LaunchSettings, Settings
from torchx_tui.specs import AppState
from torchx_tui.tui.command_palette import Commands, CommandsScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch import component_chooser, component_list
from torchx_tui.tui.launch.component_list import MOST_RECENT, arranged, growing_list
from torchx_tui.tui.launch.component_picker import ComponentPicker
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.bars import StatusLine
from torchx_tui.tui.ui.state import UiStateFile

JOB = 'def job(data: str) -> AppDef:\n    """Read data.\n\n    Args:\n        data: what is read\n    """\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    return folder


@pytest.fixture
def app(here, tmp_path):
    return make_app(CannedScheduler(), tmp_path)


def rows(screen) -> list[str]:
    """Return the rows of the list as they are drawn, the spaces between name and right side made one."""
    options = [
        screen.chooser.picker.list.get_option_at_index(i) for i in range(screen.chooser.picker.list.option_count)
    ]
    return [" ".join(str(option.prompt).split()) for option in options]


def name_at_cursor(screen) -> str:
    one = screen.chooser.picker.highlighted
    return one.name if one is not None else ""


def documentation(screen) -> str:
    return str(screen.chooser.docs._content.render())


def status(screen) -> str:
    return screen.query_one(StatusLine).left.plain


# Order


def test_each_component_is_there_once_whatever_is_pinned_or_was_launched():
    listed = {one.name: one for one in list_components()}
    names = list(listed)
    pinned, recent = ("dist.ddp", "gone", "dist.ddp"), ("gone.too", *reversed(names))
    sections = arranged(listed, pinned, recent)
    assert [section.title for section in sections] == ["Pinned", "Launched recently", "Components"]
    assert sections[0].keys == ("dist.ddp",)
    late = [name for name in reversed(names) if name != "dist.ddp"][:5]
    assert sections[1].keys == tuple(late)
    assert sorted(key for section in sections for key in section.keys) == sorted(names)
    assert [section.title for section in arranged(listed, (), ())] == [""]


async def test_pinned_come_first_then_those_launched_lately_then_the_rest(app, here, tmp_path):
    ComponentFile(tmp_path / "elsewhere" / "train.py").path.parent.mkdir()
    ComponentFile(tmp_path / "elsewhere" / "train.py").write(JOB)
    ComponentFile(here / "jobs.py").write(JOB)
    journal = app.runner.journal
    launched(journal, "train.py:job", 3 * DAY, "SUCCEEDED", cwd=str(tmp_path / "elsewhere"))
    launched(journal, "gone.py:job", HOUR, "FAILED", cwd=str(tmp_path / "elsewhere"))
    launched(journal, "utils.echo", 5 * HOUR, "SUCCEEDED")
    launched(journal, "utils.echo", 2 * HOUR, "FAILED")
    launched(journal, "dist.ddp", MINUTE, "CANCELLED")
    app.ui_state.change(pinned=("dist.ddp", str(here / "jobs.py:job")))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        shown = rows(screen)
        assert shown[:8] == [
            "Pinned",
            "dist.ddp – Cancelled 1m",
            "jobs.py:job mine",
            "Launched recently",
            "utils.echo ✗ Failed 2h",
            shown[5],
            "Components",
            "utils.touch builtin",
        ]
        # Of a path the end is seen.
        assert shown[5].startswith("…")
        assert shown[5].endswith("elsewhere/train.py:job ✓ Succeeded 3d")
        assert name_at_cursor(screen) == "dist.ddp"
        # Headings are stepped over.
        await pilot.press("down", "down")
        await until(pilot, lambda: name_at_cursor(screen) == "utils.echo")
        # A search has an order of its own, and nothing above the matches.
        await pilot.press(*"job")
        await until(pilot, lambda: len(screen.chooser.picker.shown) == 2)
        assert rows(screen)[0] == "jobs.py:job mine"
        await pilot.press("ctrl+u")
        await until(pilot, lambda: rows(screen) == shown)


async def test_a_component_of_another_folder_is_chosen_with_its_last_launch(app, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    ComponentFile(tmp_path / "elsewhere" / "train.py").write(JOB)
    # Of the same name, in another folder: another component.
    launched(app.runner.journal, "train.py:job", MINUTE, "FAILED", cwd=str(tmp_path))
    launched(app.runner.journal, "train.py:job", HOUR, "SUCCEEDED", cwd=str(tmp_path / "elsewhere"))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert rows(screen)[0] == "Launched recently"
        await until(pilot, lambda: "Launched 1 time, last 1h ago" in documentation(screen), "the documentation")
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows, "the form")
        assert screen.editor.model is not None
        assert screen.editor.model.doc.path == tmp_path / "elsewhere" / "train.py"


async def test_a_job_that_runs_says_so_also_where_the_journal_has_not_heard_of_it(here, tmp_path):
    scheduler = CannedScheduler()
    scheduler.add("echo-1", AppState.RUNNING, MINUTE)
    app = make_app(scheduler, tmp_path)
    launched(app.runner.journal, "utils.echo", MINUTE, "SUBMITTED", app_id="echo-1")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert rows(screen)[1] == "utils.echo ● Running 1m"


# Pins


async def test_a_key_pins_and_unpins_and_the_next_start_knows_it(app, here, tmp_path):
    ComponentFile(here / "jobs.py").write(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"job")
        await until(pilot, lambda: name_at_cursor(screen) == "jobs.py:job")
        await pilot.press("ctrl+k")
        assert "jobs.py:job is pinned" in status(screen)
        assert screen.chooser.picker.search.value == "job"
        await pilot.press("ctrl+u")
        await until(pilot, lambda: rows(screen)[:2] == ["Pinned", "jobs.py:job mine"])
        await pilot.press("down", "ctrl+k")
        await until(pilot, lambda: rows(screen)[2] == "utils.echo builtin")
        # The cursor stays on what was pinned.
        assert name_at_cursor(screen) == "utils.echo"
        await pilot.press("ctrl+k")
        assert "no longer pinned" in status(screen)
        await until(pilot, lambda: rows(screen)[2] == "Components")
    assert json.loads((tmp_path / "screen.json").read_text())["pinned"] == [str(here / "jobs.py:job")]
    assert UiStateFile(tmp_path / "screen.json").state.pinned == (str(here / "jobs.py:job"),)


async def test_what_is_pinned_and_gone_says_so_and_can_be_unpinned(app, tmp_path):
    app.ui_state.change(pinned=(f"{tmp_path}/gone.py:job", "team.gone"))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert [one.error is not None for one in screen.chooser.picker.shown[:3]] == [True, True, False]
        assert [row.split()[-1] for row in rows(screen)[1:3]] == ["file", "plugin"]
        await until(pilot, lambda: "it no longer exists: unpin it" in documentation(screen))
        await pilot.press("enter")
        await until(pilot, lambda: "it no longer exists" in status(screen))
        assert screen.editor.model is None
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "has no file to open" in status(screen))
        assert status(screen).startswith("✗ ")
        await pilot.press("ctrl+k")
        await until(pilot, lambda: app.ui_state.state.pinned == ("team.gone",))


# Findings


async def test_findings_stand_beside_the_documentation_with_line_and_fix(app, here):
    file = ComponentFile(here / "jobs.py")
    file.write(
        'def job(msg, n: int = 1) -> AppDef:\n    """Say [red]it[/red].\n\n    Args:\n        msg: words\n    """\n'
    )
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"job")
        await until(pilot, lambda: "This component cannot be used" in documentation(screen))
        text = " ".join(documentation(screen).split())
        assert "jobs.py:3 error Missing type annotation for argument 'msg' in function 'job' write `msg: str`" in text
        assert "Say [red]it[/red]." in text
        assert "msg str - words" in text
        assert "enter fill" not in text
        await pilot.press("enter")
        await until(pilot, lambda: "jobs.py:3: Missing type annotation" in status(screen))
        assert status(screen).startswith("✗ jobs.py:job: ")
        assert screen.editor.model is None


async def test_a_warning_does_not_keep_from_the_form(app, here):
    ComponentFile(here / "jobs.py").write("def job(n: int = 1) -> AppDef: ...\n")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press(*"job")
        await until(pilot, lambda: "warning" in documentation(screen))
        assert 'write """What job does."""' in documentation(screen)
        assert "enter fill the form" in documentation(screen)
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows, "the form")


async def test_folders_and_packages_that_cannot_be_read_are_said(here, tmp_path, monkeypatch):
    info = tmp_path / "site" / "odd-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torchx.components]\nteam = no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    settings = Settings(launch=LaunchSettings(component_folders=(str(tmp_path / "gone"),)))
    app = make_app(CannedScheduler(), tmp_path, settings=settings)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert "2 components cannot be used" in screen.query_one(StatusLine).right.plain
        assert screen.chooser.summary().plain == "13 components: 11 builtin, 1 of packages, 1 in files"
        assert "11 builtin" in status(screen)
        await pilot.press(*"team")
        await until(pilot, lambda: "no_such_package is missing" in documentation(screen))
        await pilot.press("ctrl+u", *"gone")
        await until(pilot, lambda: "component_folders in config.toml" in documentation(screen))


# Many files


async def test_the_builtins_are_there_before_the_files_and_the_cursor_stays(app, here, monkeypatch):
    going_on = threading.Event()
    from torchx_tui.components import each_listed

    def slow(folders):
        parts = each_listed(folders)
        yield next(parts)
        assert going_on.wait(PATIENCE)
        yield from parts

    ComponentFile(here / "jobs.py").write(JOB)
    monkeypatch.setattr("torchx_tui.tui.launch.component_list.each_listed", slow)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
        await pilot.press("n")
        await until(
            pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.chooser.picker.shown, "the builtins"
        )
        screen = app.screen
        assert {one.kind for one in screen.chooser.picker.shown} == {"builtin"}
        await pilot.press("down", "down", "ctrl+k")
        pinned = screen.chooser.picker.highlighted
        going_on.set()
        await until(pilot, lambda: any(one.kind == "file" for one in screen.chooser.picker.shown), "the file")
        assert screen.chooser.picker.highlighted is pinned


async def test_a_component_that_is_read_late_takes_no_others_place(app, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        first = name_at_cursor(screen)
        await pilot.press("down")
        following = name_at_cursor(screen)
        await until(pilot, lambda: screen.chooser.docs.rule.title.plain == following, "the next one")
        read, reading, going_on = component_chooser.read_component, threading.Event(), threading.Event()

        def slow(name):
            if name == first:
                reading.set()
                going_on.wait(PATIENCE)
            return read(name)

        monkeypatch.setattr(component_chooser, "read_component", slow)
        await pilot.press("up")
        await until(pilot, reading.is_set, "that the first one is read")
        await pilot.press("down")
        going_on.set()
        await settled(pilot)
        assert screen.chooser.docs.rule.title.plain == following
        await pilot.press("up")
        await until(pilot, lambda: screen.chooser.docs.rule.title.plain == first, "the first one")


async def test_of_thousands_the_list_shows_what_can_be_read_and_typing_finds_the_rest(app, here):
    for number in range(2000):
        (here / f"job_{number:04}.py").write_text(f"{HEADER}{JOB}")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert len(screen.chooser.picker.components) == 2011
        assert rows(screen)[-1] == "and 1,711 more: type to search"
        assert screen.chooser.picker.rule.info.plain == "2,011"
        await pilot.press(*"1999")
        await until(pilot, lambda: [one.name for one in screen.chooser.picker.shown] == ["job_1999.py:job"])
        assert screen.chooser.picker.rule.info.plain == "1 of 2,011"
        await until(pilot, lambda: "what is read" in documentation(screen))


def test_each_list_has_all_that_the_one_before_had(here):
    for number in range(5):
        (here / f"job_{number}.py").write_text(HEADER + JOB)
    lists = list(growing_list([here], (f"{here}/gone.py:job",), {}))
    assert len(lists[0]) == 11
    assert len(lists[-1]) == 17
    assert all(earlier.keys() <= later.keys() for earlier, later in itertools.pairwise(lists))


def test_lists_come_after_ever_longer_pauses_while_files_are_read(here, monkeypatch):
    now = [0.0]

    def each_listed(_folders):
        yield []
        for number in range(1, 12):
            now[0] = number / 10
            yield [ComponentSummary(f"job_{number}.py:job", "file", Path(), 0)]

    monkeypatch.setattr(component_list, "each_listed", each_listed)
    monkeypatch.setattr(component_list, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert [len(listed) for listed in growing_list([], (), {})] == [0, 2, 5, 9, 11]


def test_builtins_that_were_launched_since_take_no_place_of_a_file_elsewhere(here, tmp_path):
    ComponentFile(tmp_path / "elsewhere.py").write(JOB)
    keys = [*(one.name for one in list_components()[:MOST_RECENT]), f"{tmp_path}/elsewhere.py:job"]
    record = LaunchRecord("1", 0.0, "local_cwd", "torchx", {})
    assert keys[-1] in next(growing_list([here], (), dict.fromkeys(keys, record)))


# The editor


async def test_without_an_editor_it_says_what_to_set(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "export EDITOR=vim" in status(screen))
        assert status(screen).startswith("✗ ")
        move = "↑ ↓ Move"
        shown = ["type Search", "enter Choose", move, "ctrl+k Pin", "esc Back", "ctrl+e Edit file", "F1 Keys"]
        assert key_bar(app) == shown


async def test_a_terminal_that_cannot_be_left_is_said(app, monkeypatch):
    monkeypatch.setenv("EDITOR", "vi")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        await pilot.press("ctrl+e")
        await until(pilot, lambda: "cannot be suspended for vi" in status(screen))
        assert status(screen).startswith("✗ ")


async def test_clicks_and_pages_that_come_too_late_for_a_list_do_nothing(app, here):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        options = screen.chooser.picker.list
        await until(pilot, lambda: options.option_count > 5)
        # The row under the mouse is drawn of the long list still, while the short one is there already.
        event = events.Click(options, 5, 5, 0, 0, 1, False, False, False, style=Style(meta={"option": 5}))
        await pilot.press(*"demo.train")
        await until(pilot, lambda: options.option_count == 1)
        options.post_message(event)
        await pilot.press("ctrl+u", *"zzzz")
        await until(pilot, lambda: options.option_count == 0)
        options.action_page_up()
        options.action_page_down()
        await pilot.pause()
        assert screen.is_picking
    assert app._exception is None


async def test_pages_of_commands_that_are_not_there_yet(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        for key in ("colon", "pageup", "pagedown", "d", "pagedown", "pageup"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: isinstance(app.screen, CommandsScreen))
        await until(pilot, lambda: app.screen.query_one(Commands).option_count)
    assert app._exception is None


async def test_enter_before_the_list_has_come_chooses_what_it_brings(app, here, monkeypatch):
    goes_on = threading.Event()

    def late(*arguments):
        goes_on.wait(PATIENCE)
        yield from growing_list(*arguments)

    monkeypatch.setattr(component_chooser, "growing_list", late)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen), "the screen")
        screen = app.screen
        await pilot.press(*"demo.train", "enter")
        assert screen.editor.model is None
        goes_on.set()
        await until(
            pilot, lambda: screen.editor.model is not None and screen.editor.model.doc.name == "demo.train", "its form"
        )
        # Once: a list that comes later brings it no more.
        picker, told = screen.chooser.picker, []
        with monkeypatch.context() as patch:
            patch.setattr(picker, "post_message", told.append)
            picker.show(picker._listed, {}, ())
        assert [one for one in told if isinstance(one, ComponentPicker.Chosen)] == []


async def test_word_of_the_highlight_after_the_choice_does_not_end_it(app, here):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        demo = next(one for one in screen.chooser.picker.components if one.name == "demo.train")
        screen.chooser.picker.post_message(ComponentPicker.Chosen(demo))
        screen.chooser.picker.post_message(ComponentPicker.Highlighted(demo))
        await until(
            pilot, lambda: screen.editor.model is not None and screen.editor.model.doc.name == "demo.train", "its form"
        )
