"""A user's Python script on the launch screen: found, described, filled in, launched."""

from pathlib import Path

import pytest
from support.canned import HOUR
from support.launching import LaunchingScheduler, ShippingScheduler, launching_app
from support.past_launches import launched
from support.screens import launch_of

from torchx_tui.tui.launch.field_input import complete_script
from torchx_tui.tui.ui.dialog import AskDialog

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
        await launch.press(*"train.py", shows=("Train [red]well[/red].", "learning rate"), on="docs")
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
def test_paths_and_modules_are_completed(script, text, whole):
    assert complete_script(text) == whole


async def test_script_whose_name_begins_with_a_dash_is_run(app, script):
    script.with_name("-dash.py").write_text(SCRIPT)
    async with launch_of(app) as launch:
        await launch.press("minus", *"dash.py")
        await launch.finds("./-dash.py")
        await launch.choose()
        await launch.ready()
        assert "torchx-tui run --scheduler local_cwd ./-dash.py" in " ".join(launch.preview().split())
        launch.editor.preview.show("dry run")
        await launch.shows("python ./-dash.py", on="preview")


async def test_script_with_a_long_name_is_cut(app, script):
    name = f"{'long' * 50}.py"
    script.rename(name)
    async with launch_of(app, size=(80, 24)) as launch:
        await launch.pick(name)
        await launch.ready()
        rows = launch.drawn().splitlines()
        assert max(map(len, rows)) <= 80
        assert rows[-1].startswith(" ctrl+s Submit")
        assert any(row.startswith("▌lr ") for row in rows)


# The form


async def test_form_of_a_script_is_filled_and_launched(app, scheduler, script):
    script.with_name(".torchxconfig").write_text("[component:train.py]\noptimizer = adam\ngpu = 1\n")
    async with launch_of(app, "train.py") as launch:
        assert [row.field.name for row in launch.form.rows if row.display][:4] == ["lr", "out", "optimizer", "args"]
        assert launch.origin("out") == "computed"
        assert launch.fields("config") == {"optimizer": "adam", "gpu": "1"}
        assert "! not read: " in launch.warnings()
        assert "give such arguments in args" in launch.warnings()
        launch.set("lr", "1e-3, 1e-4")
        await launch.ready()
        assert launch.origin("lr") == "each of 2"
        await launch.open(AskDialog, "ctrl+s")
        await launch.press("2", "enter", until=lambda: len(scheduler.launched) == 2, what="the jobs")
        assert all(record.group.startswith("train-") for record in app.runner.journal.records())
        first = scheduler.launched[0]
        assert (first.name, first.roles[0].resource.gpu) == ("train", 1)
        assert first.roles[0].args[-5:] == ["train.py", "--lr", "1e-3", "--optimizer", "adam"]
        assert not script.with_suffix(".ran").exists()


async def test_fields_of_the_other_launcher_are_hidden(app, scheduler, script):
    async with launch_of(app, "train.py") as launch:
        assert not launch.row("nnodes").display
        launch.set("num_replicas", "3")
        launch.set("launcher", "torchrun")
        await launch.until(lambda: launch.row("nnodes").display, "the field of torchrun")
        assert not launch.row("num_replicas").display
        launch.set("nproc_per_node", "2")
        await launch.shows("torchrun", "--nproc_per_node 2", on="preview")
        # The hidden value is not part of the launch, and comes back with its field.
        launch.set("launcher", "python")
        await launch.until(lambda: launch.row("num_replicas").display)
        assert launch.value("num_replicas") == "3"


@pytest.mark.parametrize("scheduler", [ShippingScheduler()])
async def test_folder_of_a_script_is_shipped_by_default(app, scheduler, script):
    scheduler.usual_workspace = "."
    async with launch_of(app, "train.py") as launch:
        assert launch.value("workspace", "launch") == "."
        assert launch.model.plan().workspace == "."
        await launch.type("launch", workspace="")
        assert launch.model.plan().workspace == ""
        # Without it the shell would ship the folder again.
        await launch.shows("--workspace", "'' train.py", on="preview")


async def test_script_with_many_arguments_has_a_form(app, scheduler, script):
    more = "".join(f'parser.add_argument("--a{number}")\n' for number in range(400))
    script.write_text(SCRIPT.replace("if __name__", f"{more}if __name__"))
    async with launch_of(app, "train.py") as launch:
        assert "! 303 more arguments without a field: give them in args" in launch.warnings()
        launch.editor.preview.show("dry run")
        await launch.until(lambda: launch.form.row("argument", "args"), "its last row")
        launch.set("args", "--a399 x")
        await launch.shows("python train.py --a399 x", on="preview")


async def test_many_arguments_are_mounted_behind_the_first(app, scheduler, script):
    more = "".join(f'parser.add_argument("--a{number}")\n' for number in range(60))
    script.write_text(SCRIPT.replace("if __name__", f"{more}if __name__"))
    async with launch_of(app, "train.py") as launch:
        assert launch.at() == "lr"
        # The options and the later arguments come behind the first frame.
        await launch.until(lambda: {"a59", "args", "log_dir"} <= {row.field.name for row in launch.form.rows})
        names = [row.field.name for row in launch.form.rows]
        assert names[-2:] == ["log_dir", "prepend_cwd"]
        assert names[:63] == ["lr", "out", "optimizer", *(f"a{number}" for number in range(60))]
