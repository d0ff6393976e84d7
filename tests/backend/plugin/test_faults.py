"""A plugin that raises, hangs or prints costs only itself, and says why."""

import itertools
import signal
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.background import in_background
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends import registry
from torchx_tui.backends.plugin import remote
from torchx_tui.backends.plugin.wire import TIMEOUTS_S
from torchx_tui.backends.runner import Runner
from torchx_tui.specs.errors import AppDefError, BackendUnavailableError, InvalidRunConfigException, SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.workspace import Workspace

_numbers = itertools.count()

APP = AppDef("app", [Role("worker", "image", entrypoint="true", resource=Resource(1, 0, 64))])

# A scheduler whose every method does what its test module says.
BASE = """
    import sys, threading, time
    from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler, Stream
    from torchx.specs import AppDryRunInfo, AppState, Role, runopts

    never = threading.Event()

    class Base(Scheduler):
        def __init__(self, session_name):
            super().__init__("base", session_name)

        def _submit_dryrun(self, app, cfg):
            return AppDryRunInfo({"name": app.name}, repr)

        def schedule(self, info):
            return "app-1"

        def describe(self, app_id):
            return DescribeAppResponse(app_id, AppState.RUNNING, roles=[Role("worker", image="", num_replicas=1)])

        def list(self, cfg=None):
            return [ListAppResponse("app-1", AppState.RUNNING, name="app")]

        def _cancel_existing(self, app_id):
            raise KeyError("no such machine")
"""


@pytest.fixture
def install(plugins, monkeypatch):
    """Return what installs a scheduler ``odd``, whose class `Odd` has this body."""

    def add(body, head=""):
        plugins.module("acme_base", BASE)
        module = f"acme_odd{next(_numbers)}"
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        plugins.module(
            module,
            f"from acme_base import *\n{head}\nclass Odd(Base):\n    pass\n{lines}\n"
            "def create(session_name, **kwargs):\n    return Odd(session_name)\n",
        )
        plugins.distribution("acme-odd", "torchx.schedulers", odd=f"{module}:create")

    monkeypatch.setattr(remote, "LOAD_SECONDS", 60.0)
    return add


@pytest.fixture
def odd(install):
    """Return what installs a scheduler ``odd`` and returns it; it is closed afterwards."""
    with ExitStack() as stack:

        def make(*given):
            install(*given)
            return stack.enter_context(closing(registry.create_scheduler("odd", "torchx")))

        yield make


def test_a_plugin_that_raises_at_import_says_where(install):
    install("", "raise RuntimeError('no licence')")
    with pytest.raises(
        BackendUnavailableError, match=r"odd .*RuntimeError: no licence.*acme_odd\d+:create of acme-odd"
    ):
        registry.create_scheduler("odd", "torchx")
    assert registry.create_scheduler("local_cwd", "torchx", handle_signals=False)


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_plugin_that_ends_the_program_does_not(install, end):
    install("", end)
    with pytest.raises(BackendUnavailableError, match="odd could not be loaded"):
        registry.create_scheduler("odd", "torchx")


def test_a_plugin_that_hangs_at_import_holds_up_no_other(install, monkeypatch, guests):
    install("", "never.wait()")
    monkeypatch.setattr(remote, "LOAD_SECONDS", 2.0)
    monkeypatch.setattr(remote, "_RETRY_SECONDS", NEVER)
    runner = Runner("torchx")

    hung = in_background(lambda: runner.check("odd"))
    assert runner.check("local_cwd")
    with pytest.raises(BackendUnavailableError, match=r"odd was not loaded within 2 s: importing acme_odd\d+:create"):
        hung.result(PATIENCE)
    # Its guest is gone, and it is not tried again at once.
    wait_until(lambda: not guests(), "the guest's end")
    with pytest.raises(BackendUnavailableError, match="odd was not loaded within"):
        runner.check("odd")
    assert not guests()
    runner.close()


def _guests():
    """Return the processes that run a guest for this one."""
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in _read(task / "children").split()]
    return {int(pid) for pid in children if b"guest/program.py" in _read(Path("/proc", pid.decode(), "cmdline"))}


@pytest.fixture
def guests():
    """Return what lists the guests of this test; other tests may have left one that waits for its next request."""
    others = _guests()
    return lambda: _guests() - others


def _read(path):
    # Threads and processes end meanwhile.
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_plugin_may_handle_signals(odd):
    before = signal.getsignal(signal.SIGTERM)
    scheduler = odd("", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    assert scheduler.list()
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_makes_no_scheduler_is_refused(plugins):
    plugins.module("acme_words", "def create(session_name, **kwargs):\n    return 'a scheduler'")
    plugins.distribution("acme-odd", "torchx.schedulers", odd="acme_words:create")
    with pytest.raises(BackendUnavailableError, match="it made a str, which is no scheduler"):
        registry.create_scheduler("odd", "torchx")


def test_hanging_list_restarts_the_guest(odd, monkeypatch, tmp_path, guests):
    free = tmp_path / "free"
    scheduler = odd(
        f"def list(self, cfg=None):\n    import os\n    return [] if os.path.exists({str(free)!r}) else never.wait()"
    )
    monkeypatch.setitem(TIMEOUTS_S, "list", 0.2)
    for _ in range(3):
        with pytest.raises(SchedulerError, match=r"odd could not list jobs: no answer within 0.2 s"):
            scheduler.list()
    # What else it is asked meanwhile is answered.
    free.touch()
    monkeypatch.setitem(TIMEOUTS_S, "list", NEVER)
    before = guests()
    assert scheduler.list() == []
    wait_until(lambda: not before & guests(), "the end of the guest that hung")
    assert scheduler.describe("app-1") is not None


def test_a_hanging_list_does_not_end_a_launch(odd, monkeypatch, tmp_path, guests):
    began, go = tmp_path / "began", tmp_path / "go"
    scheduler = odd(
        "def list(self, cfg=None):\n    never.wait()\n"
        "def schedule(self, info):\n"
        "    import os\n"
        f"    open({str(began)!r}, 'w').close()\n"
        f"    while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "    return 'launched'"
    )
    launching = in_background(lambda: scheduler.submit(APP, {}))
    wait_until(began.exists, "the launch")
    monkeypatch.setitem(TIMEOUTS_S, "list", 0.2)
    with pytest.raises(SchedulerError, match="no answer within"):
        scheduler.list()
    before = guests()
    # A new process answers.
    assert scheduler.describe("app-1") is not None
    go.touch()
    assert launching.result(PATIENCE) == "launched"
    wait_until(lambda: not before & guests(), "the end of the process that hung")


def test_a_guest_that_dies_is_started_again(odd, tmp_path):
    died = tmp_path / "died"
    scheduler = odd(
        "def list(self, cfg=None):\n"
        "    import os, signal\n"
        f"    if not os.path.exists({str(died)!r}):\n"
        f"        open({str(died)!r}, 'w').close()\n"
        "        os.kill(os.getpid(), signal.SIGSEGV)\n"
        "        never.wait()\n"  # another thread may be the one that the signal comes to
        "    return []"
    )
    info = scheduler.submit_dryrun(APP, {})
    with pytest.raises(SchedulerError, match="odd could not list jobs: its process was ended by SIGSEGV"):
        scheduler.list()
    assert scheduler.list() == []
    # What was shown is launched all the same.
    assert scheduler.schedule(info) == "app-1"


def test_nothing_of_it_runs_in_this_process(odd, guests):
    scheduler = odd("")
    assert scheduler.list()
    assert not [name for name in sys.modules if name.startswith("acme")]
    assert guests()
    scheduler.close()
    wait_until(lambda: not guests(), "the guest's end")


def test_what_it_raises_is_an_error_of_ours_with_its_name(odd):
    scheduler = odd("def schedule(self, info):\n    raise SystemExit('out of order')")
    with pytest.raises(SchedulerError, match="odd could not cancel a job: KeyError: 'no such machine'"):
        scheduler.cancel("app-1")
    with pytest.raises(SchedulerError, match="odd could not launch: SystemExit: out of order"):
        scheduler.submit(APP, {})
    with pytest.raises(InvalidRunConfigException, match="Unknown run option `colour`"):
        scheduler.submit(APP, {"colour": "red"})


def test_nothing_reaches_the_terminal(odd, capfd):
    scheduler = odd(
        "def list(self, cfg=None):\n"
        "    import logging, subprocess, warnings\n"
        "    print('PRINTED'); print('PRINTED', file=sys.stderr); warnings.warn('PRINTED')\n"
        "    sys.stdout.writelines(['PRINTED']); sys.stdout.buffer.write(b'PRINTED'); sys.stdout.flush()\n"
        "    subprocess.run(['sh', '-c', 'echo PRINTED; echo PRINTED >&2'])\n"
        "    subprocess.run(['sh', '-c', 'echo the partition is down >&2; exit 3'], check=True)"
    )
    # What the program said last is the reason.
    with pytest.raises(SchedulerError, match=r"odd could not list jobs: sh ended with 3: the partition is down"):
        scheduler.list()
    sys.stdout.write("ours")
    seen = capfd.readouterr()
    assert "PRINTED" not in seen.out + seen.err
    assert "ours" in seen.out


def test_close_ends_a_read_that_is_blocked_in_the_plugin(odd, tmp_path):
    closed, go_on = tmp_path / "closed", tmp_path / "go_on"
    scheduler = odd(
        "def log_iter(self, *args, **kwargs):\n"
        "    import os\n"
        "    try:\n"
        "        yield 'once\\n'\n"
        f"        while not os.path.exists({str(go_on)!r}): time.sleep(0.01)\n"
        "        yield 'late\\n'\n"
        f"    finally:\n        open({str(closed)!r}, 'w').close()"
    )
    lines = scheduler.log_iter("app-1", "worker", should_tail=True)
    got = []
    reading = in_background(lambda: got.extend(lines))
    wait_until(lambda: got, "the first line")
    lines.close()
    reading.result(PATIENCE)
    assert got == ["once\n"]
    assert not closed.exists()
    # The plugin's own iterator is closed as soon as it comes back.
    go_on.touch()
    wait_until(closed.exists, "the end of the plugin's iterator")


def test_a_log_that_nobody_takes_is_not_read_on(odd, tmp_path):
    given = tmp_path / "given"
    scheduler = odd(
        "def log_iter(self, *args, **kwargs):\n"
        "    number = 0\n"
        "    while True:\n"
        "        number += 1\n"
        f"        if number % 500 == 0: open({str(given)!r}, 'w').write(str(number))\n"
        "        yield 'line\\n'"
    )
    lines = scheduler.log_iter("app-1", "worker", should_tail=True)
    assert next(lines) == "line\n"

    def read_on():
        return int(given.read_text() or 0) if given.exists() else 0

    seen = [0, 0]
    wait_until(lambda: seen.append(read_on()) or seen[-1] == seen[-2] >= 2000, "a pause")
    assert seen[-1] < 20_000
    # And goes on where it is taken.
    for _ in range(30_000):
        next(lines)
    wait_until(lambda: read_on() >= 20_000, "more of the log")
    lines.close()


def test_an_error_in_the_midst_of_a_log_follows_the_lines(odd):
    scheduler = odd("def log_iter(self, *args, **kwargs):\n    yield 'one\\n'\n    raise OSError('connection lost')")
    lines = iter(scheduler.log_iter("app-1", "worker"))
    assert next(lines) == "one\n"
    with pytest.raises(SchedulerError, match="odd could not read a log: OSError: connection lost"):
        next(lines)
    assert list(lines) == []


def test_no_logs_at_all(odd):
    scheduler = odd("")
    assert not scheduler.capabilities.log_streams
    with pytest.raises(NotImplementedError, match="odd has no logs"):
        scheduler.log_iter("app-1", "worker")


def test_workspace_is_built_by_the_plugin(odd, tmp_path):
    scheduler = odd(
        "def build_workspace_and_update_role(self, role, workspace, cfg):\n"
        "    role.image = f'{role.image} with {workspace}'\n"
        "    role.env['BUILT'] = '1'",
        "from torchx.workspace import WorkspaceMixin\nclass Base(WorkspaceMixin, Base): pass",
    )
    assert scheduler.takes_workspace
    role = Role("worker", "image", workspace=Workspace.from_str(str(tmp_path)))
    scheduler.build_workspaces([role], {})
    assert (role.image, role.env) == (f"image with {tmp_path}", {"BUILT": "1"})


def test_an_app_that_the_plugin_refuses(install):
    install("")
    runner = Runner("torchx")
    with pytest.raises(AppDefError, match="No resource for role: worker"):
        runner.dryrun(AppDef("app", [Role("worker", "image", entrypoint="true")]), "odd", {})
    assert "app" in str(runner.dryrun(APP, "odd", {}))
    runner.close()
