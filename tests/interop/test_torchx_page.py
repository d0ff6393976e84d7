"""The page docs/torchx.md: its command lines are run as they stand there, each in its terminal."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import processes_of_job
from support.terminal import Terminal
from support.waiting import PATIENCE, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "torchx.md"
_HANDLE = re.compile(r"local_\w+://torchx/sh-[a-z0-9]{10,16}")


def transcript(scheduler: str) -> list[tuple[str, str, list[str]]]:
    """Return the command lines of the page about a scheduler: terminal, line, and what is printed."""
    found: list[tuple[str, str, list[str]]] = []
    for line in PAGE.read_text().splitlines():
        match = re.fullmatch(r"    (one|two)\$ (.*)", line)
        if match:
            found.append((match[1], match[2], []))
        elif line.startswith("    ") and found:
            found[-1][2].append(line.strip())
    return [one for one in found if scheduler in one[1]]


class Terminals:
    """Runs command lines of the page; handles in it stand for the one that the first line printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.handle = ""
        self.waiting: subprocess.Popen[str] | None = None

    def run(self, line: str, *, waits: bool = False) -> str:
        """Run a line and return its stdout; one that waits for its job goes on, its handle is what is returned."""
        words = shlex.split(_HANDLE.sub(self.handle, line) if self.handle else line)
        command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
        process = subprocess.Popen(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=(self.folder / "stderr").open("w"), text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        if waits:
            self.waiting = process
            assert process.stdout is not None
            return process.stdout.readline()
        printed, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"{line}\n{printed}\n{(self.folder / 'stderr').read_text()}"
        return printed

    def check(self, line: str, printed: list[str]) -> None:
        """Run a line until it prints what the page says, spaces apart: a job takes its time."""
        wanted = [" ".join(_HANDLE.sub(self.handle, one).split()) for one in printed]

        def says() -> bool:
            output = [" ".join(one.split()) for one in self.run(line).splitlines()]
            return all(any(one in have for have in output) for one in wanted)

        wait_until(says, f"{line}: {wanted}")


@pytest.fixture
def terminals(torchx, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHX_TUI_SHOWS_TORCHX_JOBS", "1")
    made = Terminals(tmp_path)
    yield made
    if made.waiting is not None and made.waiting.poll() is None:
        made.waiting.kill()
    for pid in processes_of_job(f"TORCHX_JOB_ID={made.handle}") if made.handle else ():
        if pid != os.getpid():
            os.kill(pid, signal.SIGKILL)


def test_this_machine(terminals):
    (_, first, printed), *others = transcript("local_cwd")
    assert _HANDLE.fullmatch(printed[0])
    terminals.handle = terminals.run(first, waits=True).strip()
    assert _HANDLE.fullmatch(terminals.handle)
    with Terminal(cwd=terminals.folder) as app:
        app.wait(terminals.handle.rpartition("/")[2][:12])
        app.press("/", terminals.handle.rpartition("/")[2], "enter")
        app.wait(r"● Running.*sh-")
        app.wait(r"\b1[│┆].*step")
        assert [terminal for terminal, _, _ in others] == ["two"] * 4
        for _, line, printed in others:
            terminals.check(line, printed)
        app.wait("Cancelled")
        app.press("q")
    assert terminals.waiting is not None
    assert terminals.waiting.wait(PATIENCE) == 1
    assert processes_of_job(f"TORCHX_JOB_ID={terminals.handle}") == []


def test_docker_and_back(terminals, docker_engine, remove_apps):
    (_, first, printed), *others = transcript("local_docker")
    assert _HANDLE.fullmatch(printed[0])
    terminals.handle = terminals.run(first).strip()
    remove_apps(terminals.handle)
    assert [terminal for terminal, _, _ in others] == ["one"] * 4
    for _, line, printed in others:
        terminals.check(line, printed)


@pytest.fixture
def remove_apps(docker_engine):
    """Return what takes a handle whose containers are removed afterwards."""
    from torchx_tui.backends.runner import Runner

    handles: list[str] = []
    yield handles.append
    with Runner() as runner:
        for handle in handles:
            runner.job(handle).delete()
