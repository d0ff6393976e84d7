"""examples/ddp_digits.py, as dist.torchrun launches it. Skips where torch is not installed (`make examples`)."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import PATIENCE

from torchx_tui.components import build_app
from torchx_tui.specs import macros

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ddp_digits.py"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (importlib.util.find_spec("torch") and importlib.util.find_spec("sklearn")),
        reason="torch or scikit-learn is not installed: make examples",
    ),
]


def launch(*script_args: str) -> subprocess.CompletedProcess[str]:
    app = build_app("dist.torchrun", {"script": str(EXAMPLE), "j": "1x2", "script_args": list(script_args)})
    role = macros.Values("", "app-1", "0", rank0_env="TORCHX_RANK0_HOST").apply(app.roles[0])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **role.env, "PATH": path}
    return subprocess.run(
        [role.entrypoint, *role.args], capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
    )


def test_two_workers_learn_to_read_digits() -> None:
    done = launch("--epochs", "15")
    assert done.returncode == 0, done.stderr
    epochs = re.findall(r"epoch (\d+)/15 rank (\d) loss", done.stdout)
    assert sorted(set(epochs)) == sorted((str(epoch), rank) for epoch in range(1, 16) for rank in "01")
    accuracy = re.search(r"accuracy (\d\.\d\d)", done.stdout)
    assert accuracy is not None
    assert float(accuracy.group(1)) > 0.9


def test_a_bad_learning_rate_fails_with_words() -> None:
    done = launch("--lr", "0")
    assert done.returncode != 0
    assert "ValueError: the learning rate is 0.0: it must be above 0" in done.stderr
