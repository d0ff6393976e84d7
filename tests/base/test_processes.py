"""Real processes are told apart, on Linux by /proc and elsewhere by ps."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.waiting import wait_until

from torchx_tui.base import processes
from torchx_tui.base.processes import boot_id, has_job_id, is_running, job_processes, read_process, send_signal


@pytest.fixture(params=["proc", "ps"], autouse=True)
def way(request, monkeypatch):
    """Read processes as on Linux, and as elsewhere."""
    if request.param == "ps":
        monkeypatch.setattr(processes, "IS_LINUX", False)
    elif not sys.platform.startswith("linux"):
        pytest.skip("there is no /proc here")
    return request.param


@pytest.fixture
def child():
    """A process in a group of its own that has started another, whose number is its first line of output."""
    command = ["sh", "-c", "sleep 300 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=os.setpgrp) as started:
        yield started
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)


def test_a_boot_has_the_id_that_the_kernel_gives_it(way, tmp_path, monkeypatch):
    if way == "proc":
        assert boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return
    program = tmp_path / "sysctl"
    program.write_text('#!/bin/sh\n[ "$*" = "-n kern.bootsessionuuid" ] && echo 8C0F-1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert boot_id() == "8C0F-1"


def test_a_process_is_known_by_its_number_and_its_start(child):
    found = read_process(child.pid)
    assert found is not None
    assert (found.pid, found.parent, found.group, found.zombie) == (child.pid, os.getpid(), child.pid, False)
    assert read_process(child.pid) == found
    if processes.IS_LINUX:
        # In the kernel's ticks: two processes that were started in the same second are told apart.
        assert found.start == Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert is_running(child.pid, found.start)
    assert not is_running(child.pid, f"{found.start}1")
    assert not is_running(None, found.start)


def test_a_process_that_has_ended_is_not_signalled(child):
    found = read_process(child.pid)
    assert found is not None
    send_signal(found._replace(start="another"), signal.SIGKILL)
    assert is_running(child.pid, found.start)
    send_signal(found, signal.SIGTERM)
    wait_until(lambda: not is_running(child.pid, found.start), "its end")
    assert read_process(child.pid) == found._replace(zombie=True)
    child.wait()
    assert read_process(child.pid) is None
    send_signal(found, signal.SIGTERM)


def test_a_process_has_a_parent_and_a_group():
    started = subprocess.Popen(["sleep", "600"], preexec_fn=os.setpgrp)
    try:
        found = read_process(started.pid)
        assert found is not None
        assert (found.parent, found.group) == (os.getpid(), started.pid)
    finally:
        started.kill()
        started.wait()


def test_a_job_has_its_roots_and_what_they_started(child):
    assert child.stdout
    grandchild = int(child.stdout.readline())
    found = job_processes("none", {child.pid})
    assert {process.pid for process in found} == {child.pid, grandchild}
    assert all(is_running(process.pid, process.start) for process in found)


def test_a_job_has_what_was_started_with_its_id(way):
    if way == "ps" and sys.platform.startswith("linux"):
        pytest.skip("ps tells environments on macOS only")
    command = ["sleep", "300"]
    with subprocess.Popen(command, env={**os.environ, "TORCHX_JOB_ID": "local://torchx/a-1"}) as started:
        try:
            wait_until(lambda: has_job_id(started.pid, "local://torchx/a-1"), "its environment")
            assert not has_job_id(started.pid, "local://torchx/a")
            assert [process.pid for process in job_processes("local://torchx/a-1", set())] == [started.pid]
        finally:
            started.kill()
    assert not has_job_id(started.pid, "local://torchx/a-1")
