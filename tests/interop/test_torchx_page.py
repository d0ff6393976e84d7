"""The page docs/torchx.md: its command lines are run as they stand there, each in its terminal."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import PATIENCE, wait_until

PAGE = Path(__file__).parents[2] / "docs/torchx.md"
_HANDLE = re.compile(r"local_\w+://torchx/sh-[a-z0-9]{10,16}")


def transcript(scheduler):
    """Return the command lines of the page about a scheduler: terminal, line, and what is printed."""
    found = []
    for line in PAGE.read_text().splitlines():
        match = re.fullmatch(r"    (one|two)\$ (.*)", line)
        if match:
            found.append((match[1], match[2], []))
        elif line.startswith("    ") and found:
            found[-1][2].append(line.strip())
    return [one for one in found if scheduler in one[1]]


class Terminals:
    """Runs command lines of the page; handles in it stand for the one that the first line printed."""

    def __init__(self, folder):
        self.folder = folder
        self.handle = ""

    def run(self, line):
        """Run a line and return its stdout."""
        words = shlex.split(_HANDLE.sub(self.handle, line) if self.handle else line)
        command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
        done = subprocess.run(
            command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * PATIENCE
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def check(self, line, printed):
        """Run a line until it prints what the page says, spaces apart: a job takes its time."""
        wanted = [" ".join(_HANDLE.sub(self.handle, one).split()) for one in printed]

        def says():
            output = [" ".join(one.split()) for one in self.run(line).splitlines()]
            return all(any(one in have for have in output) for one in wanted)

        wait_until(says, f"{line}: {wanted}")


def test_docker_and_back(torchx, tmp_path, docker_engine, remove_apps):
    terminals = Terminals(tmp_path)
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

    handles = []
    yield handles.append
    with Runner() as runner:
        for handle in handles:
            runner.job(handle).delete()
