"""A user's Python script on the launch screen: found, described, filled in, launched."""

from pathlib import Path

import pytest
from support.canned import HOUR
from support.launching import LaunchingScheduler, launching_app
from support.past_launches import launched
from support.screens import launch_of

from torchx_tui.tui.launch.field_input import ScriptSuggester
from torchx_tui.tui.launch.sweep_dialog import SweepDialog

# It leaves a trace when it is run. Only it can compute one of the defaults, and what its last call adds.
SCRIPT = '''"""Train [red]well[/red]."""
import argparse, os
from pathlib import Path
Path(__file__).with_suffix(".ran").touch()

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
parser.add_argument("--out", default=os.path.join("runs", "1"))
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.add_argument(*os.environ["MORE"].split())
if __name__ == "__main__":
    args = parser.parse_args()
'''


@pytest.fixture
def scheduler():
    return LaunchingScheduler()


@pytest.fixture
def app(scheduler, tmp_path, monkeypatch):
    return launching_app(scheduler, tmp_path, monkeypatch)


@pytest.fixture
def script(app):
    Path("train.py").write_text(SCRIPT)
    Path("jobs").mkdir()
    Path("jobs/tune.py").write_text(SCRIPT)
    # No script of its own: it is not listed.
    Path("run.py").write_text("print(1)\n")
    # The letters of run.py are in this name as well.
    Path("rerun.py").write_text(SCRIPT)
    Path("jobs/tables.csv").touch()
    return Path("train.py")


# Picking


async def test_script_is_listed_and_not_run(app, script):
    async with launch_of(app) as launch:
        assert launch.message().endswith("2 scripts")
        await launch.press(*"train.py")
        await launch.shows("Train [red]well[/red].", "learning rate", on="docs")
        await launch.choose()
        assert launch.component() == "train.py"
        assert not script.with_suffix(".ran").exists()


@pytest.mark.parametrize("name", ["jobs/tune.py", "./train.py", "run.py", "-m jobs.tune"])
async def test_script_that_is_not_listed_is_named(app, script, name):
    async with launch_of(app) as launch:
        await launch.press(*("space" if letter == " " else letter for letter in name))
        await launch.finds(str(Path(name)))
        await launch.choose()


async def test_named_script_precedes_listed_matches(app, script):
    async with launch_of(app) as launch:
        await launch.choose(*"run.py")
        assert launch.component() == "run.py"


async def test_missing_script_says_so(app, script):
    async with launch_of(app) as launch:
        await launch.press(*"gone.py", "enter")
        await launch.shows("✗ gone.py: there is no file")
        assert launch.component() == ""


async def test_recent_script_of_another_folder_is_listed(app, script, tmp_path):
    other = tmp_path / "other" / "train.py"
    other.parent.mkdir()
    other.write_text(SCRIPT)
    launched(app.runner.journal, "train.py", HOUR, "FAILED", cwd=str(other.parent))
    async with launch_of(app) as launch:
        assert launch.picker_rows()[1].endswith("other/train.py ✗ Failed 1h")
        await launch.shows("Launched 1 time", on="docs")
        await launch.choose()
        assert launch.model.doc.path == other


@pytest.mark.parametrize(
    ("text", "whole"),
    [("jobs/t", "jobs/tune.py"), ("jobs", None), ("-m jo", "-m jobs."), ("-m jobs.t", "-m jobs.tune"), ("./no", None)],
)
async def test_paths_and_modules_are_completed(script, text, whole):
    assert await ScriptSuggester().get_suggestion(text) == whole
