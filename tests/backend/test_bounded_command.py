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


def test_outputs_and_exit_code_come_back():
    assert run("echo out; echo err >&2; exit 3") == CommandOutput(3, b"out\n", b"err\n")


def test_it_reads_as_much_as_is_given_and_then_the_end():
    data = os.urandom(SIZE)
    assert run("cat", stdin=data) == CommandOutput(0, data, b"")
    assert run("cat") == CommandOutput(0, b"", b"")


def test_it_need_not_read_what_is_given():
    assert run("exec <&-; echo done", stdin=bytes(SIZE)) == CommandOutput(0, b"done\n", b"")


def test_as_much_as_may_be_printed_is_no_error():
    assert run(f"head -c {SIZE} /dev/zero", max_bytes=SIZE).out == bytes(SIZE)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OverflowError) as raised:
        run(f"head -c {SIZE // 2} /dev/zero; head -c {SIZE // 2 + 1} /dev/zero >&2", max_bytes=SIZE)
    # Also while the error is known, its pipes are closed.
    assert (raised.type, len(os.listdir("/proc/self/fd"))) == (OverflowError, len(before))
    assert RUN_BESIDE_BYTES >= SIZE


def test_the_last_second_counts(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    assert run("echo out", timeout_s=1.0).out == b"out\n"


def test_what_takes_too_long_is_ended_with_its_children(tmp_path):
    told = tmp_path / "pids"
    ended = run(f"sleep 600 & echo $$ $! > {told}; echo begun; wait", timeout_s=3.0)
    assert ended.code is None
    # A busy machine may not have begun it by then.
    if ended.out:
        pids = [int(pid) for pid in told.read_text().split()]
        wait_until(lambda: all(map(is_gone, pids)), "both are gone", PATIENCE)


def test_environment_and_folder(tmp_path):
    code = "import os; print(os.getcwd(), os.environ['A'])"
    asked = [sys.executable, "-c", code]
    told = run_command(asked, timeout_s=PATIENCE, max_bytes=SIZE, env={"A": "b"}, cwd=str(tmp_path))
    assert told.out.decode().split() == [str(tmp_path), "b"]
