"""Calls of code that is not ours: how long they are waited for, and what becomes of what they print."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from support.waiting import PATIENCE

from torchx_tui.specs.calls import CallDroppedError, LimitedCaller, NoAnswerError, capture_prints
from torchx_tui.specs.errors import TorchXTuiError


@pytest.fixture
def hang():
    """Return a function that hangs until the test ends, or ``.free`` is called."""
    free = threading.Event()

    def wait() -> bool:
        return free.wait(PATIENCE)

    wait.free = free.set  # type: ignore[attr-defined]
    yield wait
    free.set()


def test_a_call_that_comes_back():
    caller = LimitedCaller("test")
    assert caller.call(lambda: threading.current_thread().name, 20) == "test"
    with pytest.raises(KeyError):
        caller.call(lambda: {}["x"], 20)
    with pytest.raises(TorchXTuiError, match="SystemExit: 3"):
        caller.call(lambda: sys.exit(3), 20)


def test_no_more_than_three_calls_may_hang(hang):
    caller = LimitedCaller("test")
    for _ in range(2):
        with pytest.raises(NoAnswerError, match="no answer within 0 s"):
            caller.call(hang, 0)
    with pytest.raises(CallDroppedError):
        caller.call(hang, 60, lambda: True)
    with pytest.raises(NoAnswerError, match="no answer to 3 questions"):
        caller.call(lambda: 1, 60)
    hanging = [thread for thread in threading.enumerate() if thread.name == "test"]
    hang.free()
    for thread in hanging:
        thread.join(PATIENCE)
    assert caller.call(lambda: 1, 60) == 1


def test_a_slow_call_is_told_of_once():
    told, answered = [], threading.Event()

    def tell(words: str) -> None:
        told.append(words)
        # Two more looks at the clock before the answer comes.
        threading.Timer(0.3, answered.set).start()

    assert LimitedCaller("test", slow_seconds=0, on_slow=tell).call(lambda: answered.wait(PATIENCE), 60)
    assert told == ["no answer for 0 s, still waiting"]


def test_a_call_that_is_not_slow_is_not_told_of(hang):
    told = []
    caller = LimitedCaller("test", slow_seconds=30, on_slow=told.append)
    with pytest.raises(NoAnswerError):
        caller.call(hang, 0.3)
    assert told == []


def test_what_is_printed_is_taken_in_this_thread_only(capfd):
    with capture_prints() as printed:
        print("ours")
        sys.stderr.writelines(["two ", "words\n"])
        sys.stdout.buffer.write(b"bytes\n")
        subprocess.run([sys.executable, "-c", "import sys; print('program', sys.stdin.read())"], check=True)
        assert subprocess.run(["echo", "kept"], stdout=subprocess.PIPE, check=True).stdout == b"kept\n"
        assert subprocess.run(["cat"], input=b"given", stdout=subprocess.PIPE, check=True).stdout == b"given"
        # A program that is started with its streams by position has them.
        read, write = os.pipe()
        with subprocess.Popen(["echo", "own"], -1, None, None, write):
            os.close(write)
            assert os.read(read, 10) == b"own\n"
        os.close(read)
        # So is one that has more than its command and the buffer's size by position.
        subprocess.Popen(["echo", "alone"], -1, None).wait(PATIENCE)
        other = threading.Thread(target=print, args=["theirs"])
        other.start()
        other.join()
        with capture_prints() as inner:
            print("inner")
            assert inner.text() == "inner"
        assert printed.text() == "ours\ntwo words\nbytes\nprogram"
    print("after")
    assert capfd.readouterr().out == "alone\ntheirs\nafter\n"


def test_of_a_great_deal_the_end_is_kept():
    with capture_prints() as printed:
        assert printed.text() == ""
        for number in range(30_000):
            print(f"line {number:06}")
        assert printed.text().endswith("line 029999")
        assert len(printed.text()) <= 20_000
        assert printed.file.seek(0, 2) <= 200_012


def test_a_plugin_sets_no_signal_handlers():
    before = signal.getsignal(signal.SIGUSR1)
    with capture_prints():
        assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) == before
        assert signal.getsignal(signal.SIGUSR1) == before
    assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) == before
    assert signal.signal(signal.SIGUSR1, before) is signal.SIG_IGN
