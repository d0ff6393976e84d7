"""The picker: order, pins, files of other folders, findings, and lists that grow while they are read."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.style import Style
from support.canned import DAY, HOUR, MINUTE, CannedScheduler
from support.component_files import HEADER, ComponentFile
from support.dashboard import make_app
from support.past_launches import launched
from support.screens import Launch, jobs_of, launch_of
from support.waiting import PATIENCE
from textual import events

from torchx_tui.backends.history.launch_record import LaunchRecord
from torchx_tui.components.finder import each_listed, list_components
from torchx_tui.components.model import ComponentSummary
from torchx_tui.settings.config import LaunchSettings, Settings
from torchx_tui.specs.status import AppState
from torchx_tui.tui.command_palette import Commands, CommandsScreen
from torchx_tui.tui.launch import component_list
from torchx_tui.tui.launch.component_list import MOST_RECENT, arranged, growing_list
from torchx_tui.tui.launch.component_picker import ComponentPicker
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui_state import UiStateFile

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


@pytest.fixture
def elsewhere(tmp_path):
    """Return another folder, which has train.py:job."""
    (tmp_path / "elsewhere").mkdir()
    ComponentFile(tmp_path / "elsewhere" / "train.py").write(JOB)
    return str(tmp_path / "elsewhere")


# Order


def test_each_component_is_listed_once():
    listed = {one.name: one for one in list_components()}
    names = list(listed)
    pinned, recent = ("dist.ddp", "gone", "dist.ddp"), ("gone.too", *reversed(names))
    sections = arranged(listed, pinned, recent)
    assert [section.title for section in sections] == ["Pinned", "Launched recently", "Components"]
    late = [name for name in reversed(names) if name != "dist.ddp"][:5]
    assert [section.keys for section in sections[:2]] == [("dist.ddp",), tuple(late)]
    assert sorted(key for section in sections for key in section.keys) == sorted(names)
    assert [section.title for section in arranged(listed, (), ())] == [""]


async def test_pinned_come_first_then_recent_launches(app, here, elsewhere):
    ComponentFile(here / "jobs.py").write(JOB)
    for component, ago, state, cwd in (
        ("train.py:job", 3 * DAY, "SUCCEEDED", elsewhere), ("gone.py:job", HOUR, "FAILED", elsewhere),
        ("utils.echo", 5 * HOUR, "SUCCEEDED", ""), ("utils.echo", 2 * HOUR, "FAILED", ""),
        ("dist.ddp", MINUTE, "CANCELLED", ""),
    ):  # fmt: skip
        launched(app.runner.journal, component, ago, state, cwd=cwd)
    app.ui_state.change(pinned=("dist.ddp", str(here / "jobs.py:job")))
    async with launch_of(app) as launch:
        shown = launch.picker_rows()
        pinned = ["Pinned", "dist.ddp – Cancelled 1m", "jobs.py:job mine"]
        assert shown[:5] == [*pinned, "Launched recently", "utils.echo ✗ Failed 2h"]
        # Of a path the end is seen.
        assert shown[5].startswith("…")
        assert shown[5].endswith("elsewhere/train.py:job ✓ Succeeded 3d")
        assert shown[6:8] == ["Components", "utils.touch builtin"]
        assert launch.highlighted() == "dist.ddp"
        # Headings are stepped over.
        await launch.press("down", "down")
        await launch.finds("utils.echo")
        # A search has an order of its own, and nothing above the matches.
        await launch.press(*"job", until=lambda: len(launch.components()) == 2)
        assert launch.picker_rows()[0] == "jobs.py:job mine"
        await launch.press("ctrl+u", until=lambda: launch.picker_rows() == shown)


async def test_a_recent_launch_of_another_folder_is_chosen(app, tmp_path, elsewhere):
    # Of the same name, in another folder: another component.
    launched(app.runner.journal, "train.py:job", MINUTE, "FAILED", cwd=str(tmp_path))
    launched(app.runner.journal, "train.py:job", HOUR, "SUCCEEDED", cwd=elsewhere)
    async with launch_of(app) as launch:
        assert launch.picker_rows()[0] == "Launched recently"
        await launch.shows("Launched 1 time, last 1h ago", on="docs")
        await launch.choose()
        assert launch.model.doc.path == Path(elsewhere, "train.py")


async def test_a_running_job_shows_its_state_of_now(here, tmp_path):
    scheduler = CannedScheduler()
    scheduler.add("echo-1", AppState.RUNNING, MINUTE)
    app = make_app(scheduler, tmp_path)
    launched(app.runner.journal, "utils.echo", MINUTE, "SUBMITTED", app_id="echo-1")
    async with launch_of(app) as launch:
        assert launch.picker_rows()[1] == "utils.echo ● Running 1m"


# Pins


async def test_a_key_pins_for_the_next_start(app, here, tmp_path):
    ComponentFile(here / "jobs.py").write(JOB)
    async with launch_of(app) as launch:
        await launch.press(*"job")
        await launch.finds("jobs.py:job")
        await launch.press("ctrl+k")
        assert "jobs.py:job is pinned" in launch.message()
        assert launch.search() == "job"
        await launch.press("ctrl+u", until=lambda: launch.picker_rows()[:2] == ["Pinned", "jobs.py:job mine"])
        await launch.press("down", "ctrl+k", until=lambda: launch.picker_rows()[2] == "utils.echo builtin")
        # The cursor stays on what was pinned.
        assert launch.highlighted() == "utils.echo"
        await launch.press("ctrl+k")
        assert "no longer pinned" in launch.message()
        await launch.until(lambda: launch.picker_rows()[2] == "Components")
    assert json.loads((tmp_path / "screen.json").read_text())["pinned"] == [str(here / "jobs.py:job")]
    assert UiStateFile(tmp_path / "screen.json").state.pinned == (str(here / "jobs.py:job"),)


async def test_a_pinned_component_that_is_gone_can_be_unpinned(app, tmp_path):
    app.ui_state.change(pinned=(f"{tmp_path}/gone.py:job", "team.gone"))
    async with launch_of(app) as launch:
        assert [row.split()[-1] for row in launch.picker_rows()[1:3]] == ["file", "plugin"]
        await launch.shows("it no longer exists: unpin it", on="docs")
        for key, words in (("enter", "it no longer exists"), ("ctrl+e", "has no file to open")):
            await launch.press(key, shows=("✗ ", words))
        assert launch.component() == ""
        await launch.press("ctrl+k", until=lambda: app.ui_state.state.pinned == ("team.gone",))


# Findings


async def test_findings_stand_beside_the_documentation(app, here):
    file = ComponentFile(here / "jobs.py")
    file.write(
        'def job(msg, n: int = 1) -> AppDef:\n    """Say [red]it[/red].\n\n    Args:\n        msg: words\n    """\n'
    )
    async with launch_of(app) as launch:
        await launch.until(lambda: "1 component cannot be used" in launch.counts())
        await launch.press(*"job", shows="This component cannot be used", on="docs")
        assert launch.docs().endswith("ctrl+e open the file in your editor\n")
        text = " ".join(launch.docs().split())
        assert "jobs.py:3 error Missing type annotation for argument 'msg' in function 'job'" in text
        assert "Say [red]it[/red]." in text
        assert "msg str - words" in text
        assert "enter fill" not in text
        await launch.press("enter", shows=("✗ jobs.py:job: ", "jobs.py:3: Missing type annotation"))
        assert launch.component() == ""


async def test_component_without_a_docstring_has_a_form(app, here):
    ComponentFile(here / "jobs.py").write("def job(n: int = 1) -> AppDef: ...\n")
    async with launch_of(app) as launch:
        await launch.press(*"job", shows="enter fill the form", on="docs")
        await launch.choose()


async def test_unreadable_folders_and_packages_are_listed(here, tmp_path, monkeypatch):
    info = tmp_path / "site" / "odd-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[torchx.components]\nteam = no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    settings = Settings(launch=LaunchSettings(component_folders=(str(tmp_path / "gone"),)))
    app = make_app(CannedScheduler(), tmp_path, settings=settings)
    async with launch_of(app) as launch:
        assert "2 components cannot be used" in launch.counts()
        assert launch.message().startswith("13 components: 11 builtin, 1 of packages, 1 in files")
        for name, words in (("team", "no_such_package is missing"), ("gone", "component_folders in config.toml")):
            await launch.press("ctrl+u", *name, shows=words, on="docs")


# Many files


async def test_builtins_come_before_files_and_the_cursor_stays(app, here, monkeypatch):
    going_on = threading.Event()

    def slow(folders):
        parts = each_listed(folders)
        yield next(parts)
        assert going_on.wait(PATIENCE)
        yield from parts

    ComponentFile(here / "jobs.py").write(JOB)
    monkeypatch.setattr(component_list, "each_listed", slow)
    async with jobs_of(app, rows=0) as table:
        await table.open(LaunchScreen, "n")
        launch = Launch(table.pilot)
        await launch.until(launch.components, "the builtins")
        assert set(launch.components()) == {one.name for one in list_components() if one.kind == "builtin"}
        await launch.press("down", "down", "ctrl+k")
        pinned = launch.highlighted()
        going_on.set()
        await launch.until(lambda: "jobs.py:job" in launch.components(), "the file")
        assert launch.highlighted() == pinned


async def test_docs_that_are_read_late_replace_no_newer_ones(app, hold):
    async with launch_of(app) as launch:
        first = launch.highlighted()
        await launch.press("down")
        following = launch.highlighted()
        await launch.until(lambda: launch.docs_title() == following, "the next one")
        held = hold(component_list, "read_component", lambda name: name == first)
        await launch.press("up", until=held.begun.is_set, what="that the first one is read")
        await launch.press("down")
        held.go.set()
        await launch.settled()
        assert launch.docs_title() == following
        await launch.press("up", until=lambda: launch.docs_title() == first, what="the first one")


async def test_a_long_list_is_cut_and_searched_as_a_whole(app, here):
    for number in range(1000):
        (here / f"job_{number:04}.py").write_text(f"{HEADER}{JOB}")
    async with launch_of(app) as launch:
        assert launch.picker_rows()[-1] == "and 711 more: type to search"
        assert launch.screen.picker.rule.info.plain == "1,011"
        await launch.press(*"0999")
        await launch.lists("job_0999.py:job")
        assert launch.screen.picker.rule.info.plain == "1 of 1,011"
        await launch.shows("what is read", on="docs")


def test_lists_come_after_ever_longer_pauses(monkeypatch):
    now = [0.0]

    def each_listed(_folders):
        yield []
        for number in range(1, 12):
            now[0] = number / 10
            yield [ComponentSummary(f"job_{number}.py:job", "file", Path(), 0)]

    monkeypatch.setattr(component_list, "each_listed", each_listed)
    monkeypatch.setattr(component_list, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert [len(listed) for listed in growing_list([], (), {})] == [0, 2, 5, 9, 11]


def test_recent_builtins_take_no_place_of_a_recent_file(here, tmp_path):
    ComponentFile(tmp_path / "elsewhere.py").write(JOB)
    keys = [*(one.name for one in list_components()[:MOST_RECENT]), f"{tmp_path}/elsewhere.py:job"]
    record = LaunchRecord("1", 0.0, "local_cwd", "torchx", {})
    assert keys[-1] in next(growing_list([here], (), dict.fromkeys(keys, record)))


# The editor


@pytest.mark.parametrize(("editor", "words"), [("", "export EDITOR=vim"), ("vi", "cannot be suspended for vi")])
async def test_an_editor_that_cannot_be_started(app, monkeypatch, editor, words):
    monkeypatch.setenv("EDITOR", editor)
    async with launch_of(app) as launch:
        await launch.press("ctrl+e", shows=("✗ ", words))
        move = "↑ ↓ Move"
        shown = ["type Search", "enter Choose", move, "ctrl+k Pin", "esc Back", "ctrl+e Edit file", "F1 Keys"]
        assert launch.key_hints() == shown


# Keys and clicks that come too early or too late


async def test_late_clicks_and_pages_on_a_list_do_nothing(app):
    async with launch_of(app) as launch:
        options = launch.screen.picker.list
        await launch.until(lambda: options.option_count > 5)
        # The row under the mouse is drawn of the long list still, while the short one is there already.
        event = events.Click(options, 5, 5, 0, 0, 1, False, False, False, style=Style(meta={"option": 5}))
        await launch.press(*"demo.train", until=lambda: options.option_count == 1)
        options.post_message(event)
        await launch.press("ctrl+u", *"zzzz", until=lambda: options.option_count == 0)
        options.action_page_up()
        options.action_page_down()
        await launch.settled()
        assert launch.screen.is_picking


async def test_pages_of_commands_that_are_not_there_yet(app):
    async with jobs_of(app, rows=0) as table:
        for key in ("colon", "pageup", "pagedown", "d", "pagedown", "pageup"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await table.open(CommandsScreen)
        await table.until(lambda: app.screen.query_one(Commands).option_count)


async def test_enter_chooses_once_the_list_has_come(app, monkeypatch, hold):
    held = hold(component_list, "each_listed")
    async with jobs_of(app, rows=0) as table:
        await table.open(LaunchScreen, "n")
        launch = Launch(table.pilot)
        await launch.press(*"demo.train", "enter")
        assert launch.component() == ""
        held.go.set()
        await launch.until(lambda: launch.component() == "demo.train", "its form")
        # A list that comes later does not choose again.
        picker, posted = launch.screen.picker, []
        monkeypatch.setattr(picker, "post_message", posted.append)
        picker.show({one.name: one for one in picker.components}, {})
        assert [one for one in posted if isinstance(one, ComponentPicker.Chosen)] == []
        monkeypatch.undo()


async def test_a_highlight_after_the_choice_does_not_undo_it(app):
    async with launch_of(app) as launch:
        picker = launch.screen.picker
        demo = next(one for one in picker.components if one.name == "demo.train")
        picker.post_message(ComponentPicker.Chosen(demo))
        picker.action_pick(1)
        await launch.until(lambda: launch.component() == "demo.train", "its form")
