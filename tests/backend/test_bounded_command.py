"""Commands of this machine: what they read and print, and how they are ended."""

import os
import sys
import time

import pytest
from support.processes import is_gone
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.shared.bounded_command import RUN_BESIDE_BYTES, CommandOutput, run_command

SIZE = 1 << 20
"""More than a pipe holds."""


def run(script, *, timeout_s=PATIENCE, max_bytes=2 * SIZE, stdin=b""):
    return run_command(["sh", "-c", script], timeout_s=timeout_s, max_bytes=max_bytes, stdin=stdin)


DATA = os.urandom(SIZE)


@pytest.mark.parametrize(
    ("script", "stdin", "expected"),
    [
        ("echo out; echo err >&2; exit 3", b"", (3, b"out\n", b"err\n")),
        ("cat", DATA, (0, DATA, b"")),
        ("cat", b"", (0, b"", b"")),
        ("exec <&-; echo done", bytes(SIZE), (0, b"done\n", b"")),
    ],
    ids=["outputs", "input", "no input", "unread input"],
)
def test_outputs_and_exit_code(script, stdin, expected):
    assert run(script, stdin=stdin) == CommandOutput(*expected)


def test_too_much_output_is_an_error():
    assert run(f"head -c {SIZE} /dev/zero", max_bytes=SIZE).out == bytes(SIZE)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OverflowError) as raised:
        run(f"head -c {SIZE // 2} /dev/zero; head -c {SIZE // 2 + 1} /dev/zero >&2", max_bytes=SIZE)
    # The pipes are closed although the error refers to its frame.
    assert (raised.type, len(os.listdir("/proc/self/fd"))) == (OverflowError, len(before))
    assert RUN_BESIDE_BYTES >= SIZE


def test_a_command_may_end_in_the_last_second(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    assert run("echo out", timeout_s=1.0).out == b"out\n"


def test_a_slow_command_is_ended_with_its_children(tmp_path):
    path = tmp_path / "pids"
    ended = run(f"sleep 600 & echo $$ $! > {path}; echo begun; wait", timeout_s=3.0)
    assert ended.code is None
    # A busy machine may not have begun it by then.
    if ended.out:
        pids = [int(pid) for pid in path.read_text().split()]
        wait_until(lambda: all(map(is_gone, pids)), "both are gone", PATIENCE)


def test_environment_and_folder(tmp_path):
    code = "import os; print(os.getcwd(), os.environ['A'])"
    asked = [sys.executable, "-c", code]
    path = run_command(asked, timeout_s=PATIENCE, max_bytes=SIZE, env={"A": "b"}, cwd=str(tmp_path))
    assert path.out.decode().split() == [str(tmp_path), "b"]
