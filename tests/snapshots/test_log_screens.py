"""Pictures of the Logs screen: merged replicas, a search, a progress bar, a traceback, a selection, without colours."""

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, settled, until
from support.pictures import FAILED, RUNNING, SIZES, at_job, shows_logs, stands_at_cause

from torchx_tui.settings.config import Settings
from torchx_tui.tui.logs.save_dialog import SaveDialog
from torchx_tui.tui.logs.search import LogSearch

TRACEBACK = """ERROR train.py:212 step 14917 failed on rank 88, gpu-a100-07
Traceback (most recent call last):
  File "/workspace/train.py", line 212, in train_step
    loss = model(**batch).loss
  File "/opt/venv/lib/python3.11/site-packages/transformers/modeling_llama.py", line 1183
    logits = self.lm_head(hidden_states)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 15.66 GiB. GPU 0 has 79.15 GiB in all
"""
BAR = "Epoch 2:  43%|████▎     | {} [12:01<15:58, 4.45it/s, loss=1.61]"


def events(k):
    """Return what replica ``k`` of a job of 16 printed: seconds ago, stream and text."""
    for step in range(12):
        text = (
            f"step {14800 + 10 * step}  loss {1.62 - step / 1000:.4f}  lr 1.71e-05  3.41 it/s  grad_norm 0.8{k % 10}\n"
        )
        yield 600 - 5 * step - k / 20, "o", text
    if k in (3, 5, 8):
        yield 535 - k, "e", f"WARNING torch.distributed: store get() is slow, 4.{k} s of the 300 s timeout used\n"
    if k == 0:
        yield 528, "o", "saving checkpoint to s3://acme-ml/llama3-8b/14880\n"
        bars = "\r".join(BAR.format(f"{done}/7480") for done in range(3200, 3211))
        yield 525, "e", f"\r{bars}"
        yield 524, "e", "\n"
    if k == 7:
        yield (
            521,
            "o",
            "\x1b[32mvalidation\x1b[0m  \x1b[1macc 0.6842\x1b[0m  \x1b[38;5;208mslowest batch 812 ms\x1b[0m\n",
        )
    if k == 3:
        yield 515, "e", "WARNING ProcessGroupNCCL: heartbeat late by 5.0 s, will abort at the 600 s timeout\n"
    if k == 11:
        yield 510, "e", TRACEBACK
    if k in (0, 1):
        yield 509 - k / 10, "e", "WARNING torch.distributed: peer rank 88 closed its connection before the timeout\n"
    if k in (2, 4, 5):
        yield 508 - k / 10, "o", "elastic: peer left, leaving the training loop at step 14917\n"
    for step in range(2):
        yield 480 - 5 * step - k / 20, "o", f"step {14890 + 10 * step}  loss 1.60{k:02d}  lr 1.71e-05  3.02 it/s\n"


@pytest.fixture
def scheduler(tmp_path):
    made = busy_scheduler(tmp_path / "logs")
    for k in range(16):
        made.write_log(RUNNING.rpartition("/")[2], k, list(events(k)))
    return made


def at_logs(*keys, wait=None):
    """Return what to do before a picture of the Logs screen of the job of 16."""

    async def run_before(pilot):
        await at_job(RUNNING, "l", wait=shows_logs)(pilot)
        pane = pilot.app.screen.logs.log_pane
        for key in keys:
            await pilot.press(key)
            await settled(pilot)  # a key that searches leads elsewhere once it has found something
        if wait is not None:
            shown = wait
            await until(pilot, lambda: shown(pane), "the picture")

    return run_before


def words(pane):
    return str(pane.query_one("#pattern-words").content)


async def search_third(pilot):
    """Search, and go to the third match."""
    await at_logs("slash", *"timeout", "enter", wait=lambda pane: "6 of 6" in words(pane))(pilot)
    pane = pilot.app.screen.logs.log_pane
    for rank in (5, 4):
        await pilot.press("N")
        await until(pilot, lambda rank=rank: f"{rank} of 6" in words(pane), "the match")


@pytest.mark.parametrize("size", SIZES)
def test_logs(snap_compare, app, size):
    assert snap_compare(app, terminal_size=SIZES[size], run_before=at_job(FAILED, "l", wait=stands_at_cause))


@pytest.mark.parametrize("size", SIZES)
def test_search(snap_compare, scheduler, tmp_path, size):
    """The match that the search stopped at, the others, their count, a progress bar, a traceback, and replicas."""
    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=SIZES[size], run_before=search_third)


@pytest.mark.parametrize("theme", ["torchx-light", "torchx-ansi-dark"])
def test_search_themes(snap_compare, scheduler, tmp_path, theme):
    app = make_app(scheduler, tmp_path, settings=Settings(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), run_before=search_third)


def test_search_no_color(snap_compare, scheduler, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=(120, 40), run_before=search_third)


def test_typed_search(snap_compare, scheduler, tmp_path):
    """What is typed has capitals: their case counts, and the row says so."""
    typed = at_logs("slash", *"NCCL")
    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=(120, 40), run_before=typed)


def test_error(snap_compare, scheduler, tmp_path):
    """The traceback of one replica, with milliseconds."""
    app = make_app(scheduler, tmp_path)
    to_error = at_logs("t", "E", "E", wait=lambda pane: pane.query_one(LogSearch).current is not None)
    assert snap_compare(app, terminal_size=(120, 40), run_before=to_error)


def test_selection(snap_compare, scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    selected = at_logs("t", "t", "E", "E", "v", *"jjjjjj", wait=lambda pane: pane.status.selected == 7)
    assert snap_compare(app, terminal_size=(120, 40), run_before=selected)


def test_selection_ascii_no_color(snap_compare, scheduler, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(scheduler, tmp_path, settings=Settings(ascii=True))
    selected = at_logs("v", *"kkk", wait=lambda pane: pane.status.selected == 4)
    assert snap_compare(app, terminal_size=(80, 24), run_before=selected)


def test_jump(snap_compare, scheduler, tmp_path):
    """A place that is none."""
    jumped = at_logs("ctrl+g", *"soon", "enter", wait=lambda pane: "not a line number or a time" in words(pane))
    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=SIZES["80x24"], run_before=jumped)


def test_save(snap_compare, scheduler, tmp_path):
    async def run_before(pilot):
        await at_logs("3", "S")(pilot)
        await until(pilot, lambda: isinstance(pilot.app.screen, SaveDialog), "the dialog")

    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=SIZES["80x24"], run_before=run_before)
