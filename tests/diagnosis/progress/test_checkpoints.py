"""The newest checkpoint of a job, by what its logs say and by names of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchx_tui.diagnosis.progress.checkpoints import newest_checkpoint


def made(folder: Path, names: list[str]) -> None:
    """Make files, and folders whose name ends with a slash, each newer than the one before."""
    for number, name in enumerate(names):
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        os.utime(path, (1000 + number, 1000 + number))


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["checkpoint-10/", "checkpoint-20/", "log.txt"], "checkpoint-20"),
        (["out/last.ckpt", "out/epoch=3-step=7.ckpt", "model.py"], "out/epoch=3-step=7.ckpt"),
        (["checkpoints/", "checkpoints/step_1/"], "checkpoints/step_1"),
        # What is in a checkpoint is part of it.
        (["global_step100/", "checkpoint-5/", "checkpoint-5/rank0.pt"], "checkpoint-5"),
        ([".cache/old.pt", "train.py"], None),
        ([], None),
    ],
)
def test_by_names(tmp_path, names, newest):
    made(tmp_path, names)
    assert newest_checkpoint([tmp_path], []) == (tmp_path / newest if newest else None)


@pytest.mark.parametrize(
    "line",
    [
        "Saving model checkpoint to out/step_9",
        "saved checkpoint: out/step_9.",
        "[rank0] 12:01 wrote checkpoint in 'out/step_9', 3.1 s",
    ],
)
def test_what_a_log_says_counts_first(tmp_path, line):
    made(tmp_path, ["out/step_9/", "other/checkpoint-99/"])
    log = tmp_path / "job.out"
    log.write_text(f"saved checkpoint to gone/step_1\n{line}\n")
    assert newest_checkpoint([tmp_path], [log]) == tmp_path / "out/step_9"


def test_logs_and_folders_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    folders = [tmp_path / name for name in ("none", "a\0b", "x" * 300)]
    assert newest_checkpoint(folders, [tmp_path / "pipe", tmp_path / "none.out"]) is None
