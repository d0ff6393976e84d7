"""Pictures of what is asked before jobs are launched again in a world that has changed."""

from support.dashboard import until
from support.pictures import FAILED, RUNNING, SIZES, at_job

from torchx_tui.backends.history.provenance import Changed
from torchx_tui.tui.job.relaunch import relaunch_dialog
from torchx_tui.tui.ui.dialog import AskDialog

COMMIT = Changed("git commit", "1a2b3c4d5e", "9f8e7d6c5b, 3 files differ")
IMAGE = Changed("image ghcr.io/pytorch/torchx:0.8.0dev0", "sha256:0123456789ab", "sha256:ba9876543210")
CONFIG = Changed("config: log_dir", "/scratch/alice/logs", "/data/logs")
FOLDER = Changed("working folder", "/home/alice/llm", "/home/alice")


def asked(changes):
    """Ask about the jobs, which the canned scheduler cannot launch."""

    async def run_before(pilot):
        app = pilot.app
        await at_job(RUNNING)(pilot)
        rows = [row for row in app.jobs.rows.values() if row.handle in changes]
        app.push_screen(relaunch_dialog(app, rows, changes))
        await until(pilot, lambda: isinstance(app.screen, AskDialog), "the dialog")

    return run_before


def test_relaunch_of_one(snap_compare, app):
    changes = {RUNNING: [FOLDER, COMMIT, IMAGE, CONFIG]}
    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=asked(changes))


def test_relaunch_of_many(snap_compare, app):
    changes = {RUNNING: [COMMIT, IMAGE], FAILED: [COMMIT]}
    assert snap_compare(app, terminal_size=(120, 40), run_before=asked(changes))
