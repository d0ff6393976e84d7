"""State files that hold anything: each affects its own row at most."""

import json
import random
from dataclasses import asdict

import pytest
from backend.local.support import document, entry
from support.odd_values import odd_text

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.base.validation import encode_json
from torchx_tui.specs.status import AppState

CASES, BATCH = 2000, 500


def state():
    role = {"name": "sh", "image": "", "entrypoint": "sh", "args": ["-c", "true"], "env": {"A": "1"}, "num_replicas": 2}
    more = {"cancel": {"by": "me", "at": 2.5}, "waits_for": [], "max_running": 0, "notes": ["a"], "log_dir": "/tmp/x"}
    app = {"format": 1, "name": "sh", "roles": [role], "metadata": {"a": [1, {"b": "c"}]}}
    return document(entry(exit_code=0), entry(1, exit_code=0), app=app, cfg={"a": False}, **more)


def test_any_state_file(local, tmp_path):
    chance = random.Random(1)
    runner = Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": local.scheduler})
    for _ in range(CASES // BATCH):
        for number in range(BATCH):
            local.put(f"odd-{number}", odd_text(chance, state()))
        local.put("good", state())
        rows = runner.list("local_cwd")
        states = {row.app_id: row.state for row in rows}
        assert len(rows) == len(states) == BATCH + 1
        assert states["good"] is AppState.SUCCEEDED
        json.loads(encode_json([asdict(row) for row in rows]), parse_constant=pytest.fail)
        for number, app_id in enumerate(states):
            described = runner.job(f"local_cwd://torchx/{app_id}").describe()
            assert described is not None
            json.loads(encode_json(asdict(described)), parse_constant=pytest.fail)
            if number % 5 == 0:
                runner.job(f"local_cwd://torchx/{app_id}").describe_native()
