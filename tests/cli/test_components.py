"""builtins and runopts."""

from __future__ import annotations

import pytest

from torchx_tui.backends.runner import Runner
from torchx_tui.specs.errors import SchedulerError


@pytest.mark.parametrize(
    ("name", "words", "printed"),
    [
        ("utils.echo", ["--msg", "copied"], "echo/0 copied"),
        ("utils.booth", ["--x1", "1", "--x2", "3", "--tracker_base", "results"], "booth(1, 3) = 0"),
        ("demo.train", ["--steps", "1", "--num_replicas", "1", "--step_seconds", "0"], "trainer/0 "),
    ],
)
def test_printed_builtin_can_be_launched(command, tmp_path, name, words, printed):
    (tmp_path / "printed.py").write_text(command("builtins", "--print", name).out)
    ended = command("run", "-s", "local_cwd", f"printed.py:{name.partition('.')[2]}", *words)
    assert (ended.code, printed in ended.err) == (0, True), ended.err


def test_runopts_leaves_out_a_broken_scheduler(command, monkeypatch):
    made = Runner.scheduler

    def broken(self: Runner, name: str) -> object:
        if name == "kubernetes":
            raise SchedulerError("no client is installed")
        return made(self, name)

    monkeypatch.setattr(Runner, "scheduler", broken)
    every = command("runopts", "--json")
    assert (every.code, "local_cwd" in every.data, "kubernetes" in every.data) == (0, True, False)
    assert every.err == "torchx-tui: kubernetes is left out: no client is installed\n"
    one = command("runopts", "kubernetes")
    assert (one.code, one.out, one.err) == (2, "", "torchx-tui: no client is installed\n")
