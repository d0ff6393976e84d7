"""A shell in a replica, in a real pseudo-terminal."""

import os
import socket
import sys
import threading
from pathlib import Path

import pexpect
import pytest
from support.scripted_engine import listed, refused
from support.waiting import PATIENCE

from torchx_tui.backends.docker.beside import run_beside, split_streams
from torchx_tui.backends.docker.shell import main, relay, shell_command
from torchx_tui.backends.shared.terminal_relay import wait_readable
from torchx_tui.specs.errors import SchedulerError


def without_docker(monkeypatch):
    monkeypatch.setattr("torchx_tui.backends.docker.shell.shutil.which", lambda name: None)


@pytest.mark.parametrize("has_client", [True, False])
def test_a_shell_on_a_terminal(app, monkeypatch, has_client):
    if not has_client:
        without_docker(monkeypatch)
    app.start("sleep 300", hostname="inside")
    # The terminal has a size of its own.
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("LINES", "20")
    command = shell_command(app.engine, app.app_id, "worker", 0)
    assert (Path(command[0]).name == "docker") is has_client
    child = pexpect.spawn(command[0], command[1:], dimensions=(31, 87), timeout=PATIENCE, encoding="utf-8")
    child.expect("# ")
    child.sendline("hostname; tty")
    child.expect(r"inside\s+/dev/pts")
    # A size reaches the shell some moments later.
    size_comes = "while [ \"$(stty size)\" != '{}' ]; do sleep 0.1; done; echo it is $((6 * 7))"
    child.sendline(size_comes.format("31 87"))
    child.expect("it is 42")
    child.setwinsize(41, 99)
    child.sendline(size_comes.format("41 99"))
    child.expect("it is 42")
    # In a process of its own, so that no moment is left in which nobody would end.
    child.sendline("sh -c 'echo begun $((1 + 1)); exec sleep 3600'")
    child.expect("begun 2")
    child.sendcontrol("c")
    child.expect("# ")
    child.sendline("exit 5")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5


def test_a_size_is_told_again_until_the_program_has_begun(monkeypatch):
    ours, engines = socket.socketpair()
    keyboard, screen = os.openpty()
    never, resizes = os.pipe()
    taken = iter([False, False, True])
    waits = []

    def wait(sources, timeout_s):
        waits.append(timeout_s)
        return wait_readable(sources, timeout_s)

    def resize():
        has_begun = next(taken)
        if has_begun:
            engines.close()
        return has_begun

    monkeypatch.setattr("torchx_tui.backends.docker.shell.wait_readable", wait)
    with open(screen) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys, "stdout", terminal)
        late = threading.Timer(PATIENCE, engines.close)
        late.start()
        relay(ours, never, resize)
        late.cancel()
    for descriptor in (keyboard, never, resizes):
        os.close(descriptor)
    assert next(taken, "asked three times") == "asked three times"
    # Nobody sees a screen of the wrong size for long, and once it is right nothing is asked.
    *before, afterwards = waits
    assert [wait is not None and wait < 0.5 for wait in before] == [True, True]
    assert afterwards is None


def test_the_terminal_is_as_it_was_afterwards(app, monkeypatch):
    without_docker(monkeypatch)
    app.start("sleep 300")
    command = shell_command(app.engine, app.app_id, "worker", 0)
    child = pexpect.spawn("sh", ["-c", 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo the same', "sh",
                                 *command], timeout=PATIENCE, encoding="utf-8")  # fmt: skip
    child.expect("# ")
    child.sendline("exit")
    child.expect("the same")


# Where an engine answers as it is told to

STARTED = (200, b"")


def can_execute(scripted):
    """Let a container be there in which programs can be started."""
    scripted.has(listed())
    scripted.answers["POST", "/containers/c0/exec"] = 201, {"Id": "e"}


@pytest.mark.parametrize(
    ("started", "code", "found"),
    [
        (STARTED, 0, "bash"),
        (STARTED, 3, "sh"),
        (STARTED, 126, ""),
        (refused(400, 'exec: "sh": executable file not found in $PATH'), 0, ""),
        (refused(400, "stat /bin/sh: no such file or directory"), 0, ""),
    ],
)
def test_the_best_shell_that_there_is(scripted, monkeypatch, started, code, found):
    without_docker(monkeypatch)
    can_execute(scripted)
    scripted.answers["POST", "/exec/e/start"] = started
    scripted.gives("/exec/e/json", {"ExitCode": code})
    engine = scripted.engine()
    if found:
        program = [sys.executable, "-m", "torchx_tui.backends.docker.shell"]
        assert shell_command(engine, "app-x", "worker", 0) == [*program, "c0", found]
        return
    with pytest.raises(SchedulerError, match=r"the image of worker/0, busybox, has no shell \(neither bash nor sh\)"):
        shell_command(engine, "app-x", "worker", 0)


def test_a_shell_that_the_engine_refuses_to_look_for(scripted):
    can_execute(scripted)
    scripted.answers["POST", "/exec/e/start"] = refused(500, "the runtime is broken")
    with pytest.raises(SchedulerError, match=r"^the runtime is broken$"):
        shell_command(scripted.engine(), "app-x", "worker", 0)


@pytest.mark.parametrize(("state", "words"), [("paused", "is paused"), (None, "is unknown")])
def test_what_needs_a_running_replica(scripted, state, words):
    container = listed(state=state or "")
    if state is None:
        del container["State"]
    scripted.has(container)
    with pytest.raises(SchedulerError, match=f"^worker/0 of app-x {words}: a shell needs"):
        shell_command(scripted.engine(), "app-x", "worker", 0)
    with pytest.raises(SchedulerError, match=f"^worker/0 of app-x {words}, not running"):
        run_beside(scripted.engine(), "app-x", "worker", 0, ["true"], 1.0)


@pytest.mark.parametrize(("given", "told"), [(None, "xterm"), ("vt100", "vt100")])
def test_a_program_is_told_the_kind_of_terminal(scripted, monkeypatch, capsys, given, told):
    monkeypatch.setenv("DOCKER_HOST", scripted.host)
    monkeypatch.delenv("TERM") if given is None else monkeypatch.setenv("TERM", given)
    scripted.answers["POST", "/containers/c/exec"] = refused(409, "container c is not running")
    assert main(["c", "sh", "-l"]) == 1
    assert capsys.readouterr().err == "container c is not running\n"
    body = scripted.asked[-1].body
    assert (body["Cmd"], body["Env"], body["Tty"], body["AttachStdin"]) == (["sh", "-l"], [f"TERM={told}"], True, True)


def framed(stream, data):
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def test_what_a_command_beside_a_replica_prints(scripted):
    can_execute(scripted)

    def answered(printed, code):
        scripted.answers["POST", "/exec/e/start"] = 200, printed
        scripted.gives("/exec/e/json", {"ExitCode": code})
        found = run_beside(scripted.engine(), "app-x", "worker", 0, ["ls"], PATIENCE)
        return found.code, found.out, found.err

    assert answered(framed(1, b"out") + framed(2, b"err") + framed(1, b"x" * 300), 3) == (
        3,
        b"out" + b"x" * 300,
        b"err",
    )
    assert answered(framed(2, b"OCI runtime exec failed"), 1) == (1, b"", b"OCI runtime exec failed")
    assert answered(framed(1, b"not of the runtime"), 127) == (127, b"not of the runtime", b"")
    for code in (126, 127):
        with pytest.raises(SchedulerError, match="the image of worker/0, busybox, has no ls"):
            answered(framed(1, b"OCI runtime exec failed: no"), code)
    # A piece of which the end is missing, or the head.
    assert split_streams(framed(1, b"whole") + framed(2, b"cut off")[:-4]) == (b"whole", b"cut")
    assert split_streams(framed(1, b"whole") + framed(2, b"")[:5]) == (b"whole", b"")
    assert split_streams(framed(2, b"a") + framed(1, b"b") + framed(2, b"c") + framed(1, b"d")) == (b"bd", b"ac")
    assert split_streams(framed(1, b"")) == (b"", b"")


def test_a_command_that_prints_without_end_is_left(scripted, monkeypatch):
    monkeypatch.setattr("torchx_tui.backends.docker.beside.RUN_BESIDE_BYTES", 1 << 20)
    can_execute(scripted)
    scripted.answers["POST", "/exec/e/start"] = 200, bytes(1 << 22)
    with pytest.raises(SchedulerError, match="the command printed more than 1 MB"):
        run_beside(scripted.engine(), "app-x", "worker", 0, ["yes"], PATIENCE)
