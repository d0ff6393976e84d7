"""This program's terminal while another program has it: raw within, as it was afterwards."""

import fcntl
import os
import resource
import select
import signal
import struct
import sys
import termios

import pytest
from support.waiting import PATIENCE

from torchx_tui.backends.shared.terminal_relay import (
    raw_terminal,
    read_keys,
    resize_events,
    terminal_size,
    wait_readable,
    write_all,
)


def open_descriptors():
    return sorted(os.listdir("/proc/self/fd"))


@pytest.fixture
def terminal():
    pair = os.openpty()
    yield pair
    for descriptor in pair:
        os.close(descriptor)


def test_a_terminal_is_raw_and_restored(terminal):
    keyboard, screen = terminal
    before = termios.tcgetattr(screen)
    with raw_terminal(screen):
        os.write(keyboard, b"\x03x")
        assert read_keys(screen) == b"\x03x"
        assert termios.tcgetattr(screen) != before
    assert termios.tcgetattr(screen) == before
    with pytest.raises(KeyError), raw_terminal(screen):
        raise KeyError
    assert termios.tcgetattr(screen) == before


def test_a_pipe_is_read_until_it_is_closed():
    reading, writing = os.pipe()
    with raw_terminal(reading):
        write_all(writing, b"keys")
        os.close(writing)
        assert [read_keys(reading), read_keys(reading)] == [b"keys", b""]
    os.close(reading)
    assert read_keys(reading) == b""


def test_a_change_of_size_can_be_read():
    before, descriptors = signal.getsignal(signal.SIGWINCH), open_descriptors()
    with resize_events() as resized:
        assert select.select([resized], [], [], 0)[0] == []
        os.kill(os.getpid(), signal.SIGWINCH)
        assert select.select([resized], [], [], PATIENCE)[0] == [resized]
        assert os.read(resized, 10) == bytes([signal.SIGWINCH])
    assert signal.getsignal(signal.SIGWINCH) is before
    assert signal.set_wakeup_fd(-1) == -1
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(resized)
    assert open_descriptors() == descriptors


def test_unread_changes_of_size_are_no_fault(capfd):
    with resize_events() as resized:
        fcntl.fcntl(resized, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(5000):
            signal.raise_signal(signal.SIGWINCH)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("known", "size"), [((20, 100), (100, 20)), ((0, 0), (80, 24)), (None, (80, 24))])
def test_the_size_is_the_terminals_own(monkeypatch, terminal, known, size):
    """The environment has the size of some time before."""
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("LINES", "10")
    path = os.devnull
    if known is not None:
        path = os.ttyname(terminal[1])
        fcntl.ioctl(terminal[0], termios.TIOCSWINSZ, struct.pack("HHHH", *known, 0, 0))
    with open(path, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert terminal_size() == size


def test_descriptors_above_1023_can_be_waited_for():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 2000)
    try:
        assert wait_readable([high], 0) == []
        os.write(writing, b"x")
        assert wait_readable([high], PATIENCE) == [high]
    finally:
        for descriptor in (reading, writing, high):
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
