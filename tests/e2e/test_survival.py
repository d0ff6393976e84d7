"""Die and come back: jobs outlive the terminal, the dashboard, and even their supervisor."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from contextlib import suppress

import psutil
import pytest
from actions import cancel, open_with, wait_top
from support.processes import processes_of_job
from support.terminal import COMMAND
from support.waiting import PATIENCE, wait_until


def open_with_job(terminal, **values):
    """Open the dashboard with a job of its own that runs."""
    app = open_with(terminal, "demo.train", {"steps": "600", "step_seconds": "1", **values})
    wait_top(app, "Running")
    return app


def start_another(app):
    """Launch the job at the cursor again; return the new one's id, to which the cursor goes."""
    before = app_id(app)
    app.press("r")
    wait_top(app, "Running")
    app.press("g", wait=lambda _: app_id(app) != before)
    return app_id(app)


def app_id(app):
    """Return the id of the job at the cursor, from its card."""
    text = app.wait(r"demo-train-[a-z0-9]{10,}")
    return re.findall(r"demo-train-[a-z0-9]{10,16}", text)[0]


def test_the_dashboard_dies_and_the_job_is_found_again(terminal, tmp_path):
    script = tmp_path / "job.py"
    script.write_text("import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.1)\n")
    app = open_with(terminal, "utils.python", {"script": str(script), "name": "waits"})
    wait_top(app, "Running")
    name = re.findall(r"\bwaits-[a-z0-9]{10,16}", app.wait(r"\bwaits-[a-z0-9]{10,16}"))[0]
    os.kill(app.pid, signal.SIGKILL)
    app.wait_for_end()
    assert processes_of_job(name)
    again = terminal()
    wait_top(again, "Running")
    (tmp_path / "go").touch()
    wait_top(again, "Succeeded")
    # Its whole log, from the first line.
    again.press("l", wait=r"› +Logs")
    again.press("g", wait=r"\bbegun\b")


def forked(signals=(), size=None):
    """Start the dashboard in a terminal that knows its size only if it is given, and wait until it is drawn.

    Return its pid and the terminal.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        os.execve(COMMAND, [COMMAND], {**os.environ, "TERM": "xterm-256color"})
    if size:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    seen = b""
    while b"No jobs yet" not in seen:
        assert select.select([terminal], [], [], PATIENCE)[0], seen[-300:]
        seen += os.read(terminal, 65536)
    return pid, terminal


def close_and_wait(pid, terminal):
    os.close(terminal)
    wait_until(lambda: os.waitpid(pid, os.WNOHANG) != (0, 0), "the dashboard's end")


@pytest.mark.slow
def test_closed_terminal_ends_the_dashboard(own_home):
    """As under nohup: a hang-up is ignored, and reading a terminal that is gone would spin for ever."""
    close_and_wait(*forked([signal.SIGHUP], (40, 120)))


@pytest.mark.slow
def test_a_terminal_that_does_not_know_its_size_is_drawn_once(own_home):
    """As in a container, whose terminal learns its size later: nothing is drawn again and again for two sizes."""
    pid, terminal = forked()
    still = 0
    while select.select([terminal], [], [], 1.5)[0]:
        still += len(os.read(terminal, 65536))
        assert still < 200_000
    close_and_wait(pid, terminal)


@pytest.mark.slow
def test_suspended_and_continued_and_a_storm_of_sizes(terminal):
    app = terminal(wait="No jobs yet")
    os.kill(app.pid, signal.SIGTSTP)
    wait_until(lambda: psutil.Process(app.pid).status() == psutil.STATUS_STOPPED, "the stop")
    os.kill(app.pid, signal.SIGCONT)
    wait_until(lambda: psutil.Process(app.pid).status() != psutil.STATUS_STOPPED, "the rest of its life")
    # All of it is drawn, before any key.
    app.wait(r"torchx-tui(.|\n)*No jobs yet(.|\n)*Keys")
    app.press("n", wait="Component")
    app.press("escape", wait="No jobs yet")
    for number in range(60):
        app.process.setwinsize(10 + number * 7 % 50, 20 + number * 13 % 180)
    app.process.setwinsize(40, 120)
    app.press("n", wait="Component")
    app.press("escape", wait="No jobs yet")
    app.press("q")
    assert app.wait_for_end() == 0


def test_ctrl_z_leaves_the_terminal_to_the_shell(terminal):
    shell = terminal(arguments=["bash", "--norc", "-i"])
    shell.press(f"{COMMAND}\r", wait="No jobs yet")
    shell.press("ctrl+z", wait="Stopped")
    # An answer of the terminal that comes late may stand in the line.
    shell.press("ctrl+u")
    shell.press("fg\r", wait=r"torchx-tui(.|\n)*No jobs yet(.|\n)*Keys")
    shell.press("n", wait="Component")


@pytest.mark.slow
def test_ctrl_z_without_a_shell_stops_nothing(terminal):
    app = terminal(wait="No jobs yet")
    app.press("ctrl+z", wait="Cannot suspend: this program was not started by a shell")
    assert psutil.Process(app.pid).status() != psutil.STATUS_STOPPED


@pytest.mark.slow
def test_two_dashboards_see_each_others_jobs(terminal):
    other = terminal(wait="No jobs yet")
    one = open_with_job(terminal)
    wait_top(other, "Running")
    other.wait(lambda text: app_id(one) in text)
    cancel(other)
    wait_top(one, "Cancelled")


@pytest.mark.slow
def test_supervisors_and_replicas_die(terminal):
    app = open_with_job(terminal, num_replicas="1")
    # The replica alone.
    name = app_id(app)
    os.kill(sorted(processes_of_job(name))[0], signal.SIGKILL)
    wait_top(app, "Failed")
    app.press("enter", wait=r"(?s)Why.*SIGKILL")
    app.press("escape", wait="STATE")
    # The supervisor alone: the job continues unsupervised.
    name = start_another(app)
    os.kill(psutil.Process(processes_of_job(name)[0]).ppid(), signal.SIGKILL)
    app.wait("unsupervised")
    assert processes_of_job(name)
    cancel(app)
    wait_until(lambda: not processes_of_job(name), "the replicas' end")
    wait_top(app, "Cancelled")
    # Both.
    name = start_another(app)
    pids = processes_of_job(name)
    for pid in [psutil.Process(pids[0]).ppid(), *pids]:
        with suppress(ProcessLookupError):  # the end of its parent may have ended it
            os.kill(pid, signal.SIGKILL)
    wait_top(app, "Unknown")
    app.press("enter", wait="supervisor")


def test_quit_asks_and_keeps(terminal):
    app = open_with_job(terminal)
    name = app_id(app)
    app.press("q", wait="Keep running")
    app.press("escape", wait="STATE")
    app.press("q", wait="Keep running")
    app.press("enter")
    assert app.wait_for_end() == 0
    assert processes_of_job(name)
    again = terminal()
    wait_top(again, "Running")
    # Found, not launched here: quitting asks nothing and leaves it alone.
    again.press("q")
    assert again.wait_for_end() == 0
    assert processes_of_job(name)


@pytest.mark.slow
def test_quit_can_cancel(terminal):
    app = open_with_job(terminal)
    name = app_id(app)
    app.press("q", wait="Keep running")
    app.press("y")
    app.wait_for_end()
    wait_until(lambda: not processes_of_job(name), "the job's end")


def test_signals_end_own_jobs_only(terminal):
    app = open_with_job(terminal)
    name = app_id(app)
    watcher = terminal()
    wait_top(watcher, "Running")
    os.kill(watcher.pid, signal.SIGHUP)
    watcher.wait_for_end()
    assert processes_of_job(name)
    os.kill(app.pid, signal.SIGTERM)
    app.wait_for_end()
    wait_until(lambda: not processes_of_job(name), "the job's end")
