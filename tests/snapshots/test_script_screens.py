"""Pictures of a Python script: its form, and the rows of its launches in the table."""

from pathlib import Path

from support.canned import MINUTE, CannedScheduler
from support.dashboard import make_app
from support.launching import LaunchingScheduler, launching_app
from support.pictures import SIZES, at_job
from support.screens import form_of

from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import AppState

SCRIPT = '''"""Fine-tune a model."""
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-5, help="learning rate of the first step")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--optimizer", choices=["adamw", "lion", "sgd"], default="adamw")
parser.add_argument("--out", default=os.path.join("runs", os.environ["USER"]))
parser.add_argument("--bf16", action="store_true")
add_model_arguments(parser)
args = parser.parse_args()
'''


def test_form_of_a_python_script(snap_compare, tmp_path, monkeypatch):
    app = launching_app(LaunchingScheduler(), tmp_path, monkeypatch)
    Path("finetune.py").write_text(SCRIPT)
    dryrun = app.runner.dryrun

    def with_python(*args, **kwargs):
        info = dryrun(*args, **kwargs)
        info.interpreter = "/home/alice/sft/.venv/bin/python (/home/alice/sft/.venv)"
        return info

    monkeypatch.setattr(app.runner, "dryrun", with_python)

    async def filled(pilot):
        launch = await form_of(pilot, "finetune.py")
        await launch.type(lr="1e-5, 3e-5")
        await launch.ready()
        await launch.settled()

    assert snap_compare(app, sizes=SIZES, run_before=filled)


def test_launches_of_a_python_script(snap_compare, tmp_path):
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    app = make_app(scheduler, tmp_path)
    rates = {"batch-size": "64"}
    launches = [
        LaunchOrigin("finetune.py", rates | {"lr": lr}, group="finetune-b4x2", swept={"lr": lr})
        for lr in ("1e-5", "3e-5", "1e-4")
    ]
    launches.append(LaunchOrigin("finetune.py", {"optimizer": "lion", "batch-size": "64"}))
    launches.append(LaunchOrigin("finetune.py"))
    for number, origin in enumerate(launches):
        app_id = f"finetune-bcd0f1g2h3j4k{number}"
        scheduler.add(app_id, AppState.SUCCEEDED, (number + 1) * MINUTE)
        scheduler.write_log(app_id, 0, [(30.0, "o", "done\n")])
        record = app.runner.journal.record_intent(AppDef("finetune", []), "local_cwd", "torchx", {}, origin=origin)
        app.runner.journal.update(record, app_id=app_id)
    sizes = {**SIZES, "200x50": (200, 50)}
    before = at_job(
        "local_cwd://torchx/finetune-bcd0f1g2h3j4k0",
        wait=lambda app: app.screen.logs.log_pane.status.state == "ended",
    )
    assert snap_compare(app, sizes=sizes, run_before=before)
