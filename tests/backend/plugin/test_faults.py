"""A plugin that raises, hangs or prints costs only itself, and says why."""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.torchx_plugins import Plugins
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends import registry
from torchx_tui.backends.plugin import remote
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import (
    AppDef,
    AppDefError,
    BackendUnavailableError,
    InvalidRunConfigException,
    Resource,
    Role,
    SchedulerError,
)

# A module that hangs while it is imported keeps its name for itself, in the whole process.
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
def install(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what installs a scheduler ``odd``, whose class `Odd` has this body."""

    def add(body: str, head: str = "") -> None:
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


def test_a_plugin_that_raises_at_import_says_where(install: Any) -> None:
    install("", "raise RuntimeError('no licence')")
    with pytest.raises(
        BackendUnavailableError, match=r"odd .*RuntimeError: no licence.*acme_odd\d+:create of acme-odd"
    ):
        registry.create_scheduler("odd", "torchx")
    assert registry.create_scheduler("local_cwd", "torchx", handle_signals=False)


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise KeyboardInterrupt"])
def test_a_plugin_that_ends_the_program_does_not(install: Any, end: str) -> None:
    install("", end)
    with pytest.raises(BackendUnavailableError, match="odd could not be loaded"):
        registry.create_scheduler("odd", "torchx")


def test_a_plugin_that_hangs_at_import_holds_up_no_other(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install("", "never.wait()")
    monkeypatch.setattr(remote, "LOAD_SECONDS", 2.0)
    runner = Runner("torchx")

    def check_it() -> None:
        with pytest.raises(BackendUnavailableError, match="odd was not loaded within"):
            runner.check("odd")

    hung = threading.Thread(target=check_it, daemon=True)
    hung.start()
    assert runner.check("local_cwd")
    assert hung.is_alive()
    hung.join(PATIENCE)
    assert not hung.is_alive()
    # It is not waited for again, and no second import is begun.
    threads = threading.active_count()
    with pytest.raises(BackendUnavailableError, match=r"odd still hangs: importing acme_odd\d+:create"):
        runner.check("odd")
    assert threading.active_count() == threads
    runner.close()


def test_what_makes_no_scheduler_is_refused(plugins: Plugins) -> None:
    plugins.module("acme_words", "def create(session_name, **kwargs):\n    return 'a scheduler'")
    plugins.distribution("acme-odd", "torchx.schedulers", odd="acme_words:create")
    with pytest.raises(BackendUnavailableError, match="it made a str, which is no scheduler"):
        registry.create_scheduler("odd", "torchx")


def test_a_list_that_hangs_is_given_up(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install("def list(self, cfg=None):\n    never.wait()")
    scheduler: Any = registry.create_scheduler("odd", "torchx")
    ask = scheduler._calls.call
    monkeypatch.setattr(scheduler._calls, "call", lambda what, function, seconds=1.0: ask(what, function, 0.2))
    for _ in range(3):
        with pytest.raises(SchedulerError, match=r"odd could not list jobs: no answer within 0.2 s"):
            scheduler.list()
    # No more threads than these hang in it.
    with pytest.raises(SchedulerError, match="no answer to 3 questions"):
        scheduler.list()


def test_what_it_raises_is_an_error_of_ours_with_its_name(install: Any) -> None:
    install("def schedule(self, info):\n    raise SystemExit('out of order')")
    scheduler = registry.create_scheduler("odd", "torchx")
    with pytest.raises(SchedulerError, match="odd could not cancel a job: KeyError: 'no such machine'"):
        scheduler.cancel("app-1")
    with pytest.raises(SchedulerError, match="odd could not launch: SystemExit: out of order"):
        scheduler.submit(APP, {})
    with pytest.raises(InvalidRunConfigException, match="Unknown run option `colour`"):
        scheduler.submit(APP, {"colour": "red"})


def test_nothing_reaches_the_terminal(install: Any, capfd: pytest.CaptureFixture[str]) -> None:
    install(
        "def list(self, cfg=None):\n"
        "    import logging, subprocess, warnings\n"
        "    print('PRINTED'); print('PRINTED', file=sys.stderr); warnings.warn('PRINTED')\n"
        "    sys.stdout.writelines(['PRINTED']); sys.stdout.buffer.write(b'PRINTED'); sys.stdout.flush()\n"
        "    subprocess.run(['sh', '-c', 'echo PRINTED; echo PRINTED >&2'])\n"
        "    subprocess.run(['sh', '-c', 'echo the partition is down >&2; exit 3'], check=True)"
    )
    scheduler = registry.create_scheduler("odd", "torchx")
    # What the program said last is the reason.
    with pytest.raises(SchedulerError, match=r"odd could not list jobs: sh ended with 3: the partition is down"):
        scheduler.list()
    sys.stdout.write("ours")
    seen = capfd.readouterr()
    assert "PRINTED" not in seen.out + seen.err
    assert "ours" in seen.out


def test_close_ends_a_read_that_is_blocked_in_the_plugin(install: Any, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    install(
        "go_on = threading.Event()\n"
        "def log_iter(self, *args, **kwargs):\n"
        "    try:\n"
        "        yield 'once\\n'\n"
        "        self.go_on.wait()\n"
        "        yield 'late\\n'\n"
        f"    finally:\n        open({str(closed)!r}, 'w').close()"
    )
    scheduler: Any = registry.create_scheduler("odd", "torchx")
    lines = scheduler.log_iter("app-1", "worker", should_tail=True)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.extend(lines), daemon=True)
    reader.start()
    wait_until(lambda: got, "the first line")
    lines.close()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert got == ["once\n"]
    assert not closed.exists()
    # The plugin's own iterator is closed as soon as it comes back.
    scheduler._theirs.go_on.set()
    wait_until(closed.exists, "the end of the plugin's iterator")


def test_a_log_that_nobody_takes_is_not_read_on(install: Any) -> None:
    install(
        "given = 0\n"
        "def log_iter(self, *args, **kwargs):\n"
        "    while True:\n"
        "        self.given += 1\n"
        "        yield 'line\\n'"
    )
    scheduler: Any = registry.create_scheduler("odd", "torchx")
    lines = scheduler.log_iter("app-1", "worker", should_tail=True)
    assert next(lines) == "line\n"
    seen = [0, 0]
    wait_until(lambda: seen.append(scheduler._theirs.given) or seen[-1] == seen[-2] > 1000, "a pause")
    assert seen[-1] < 5000
    lines.close()


def test_an_error_in_the_midst_of_a_log_follows_the_lines(install: Any) -> None:
    install("def log_iter(self, *args, **kwargs):\n    yield 'one\\n'\n    raise OSError('connection lost')")
    scheduler = registry.create_scheduler("odd", "torchx")
    lines = iter(scheduler.log_iter("app-1", "worker"))
    assert next(lines) == "one\n"
    with pytest.raises(SchedulerError, match="odd could not read a log: OSError: connection lost"):
        next(lines)
    assert list(lines) == []


def test_no_logs_at_all(install: Any) -> None:
    install("")
    scheduler = registry.create_scheduler("odd", "torchx")
    assert not scheduler.capabilities.log_streams
    with pytest.raises(NotImplementedError, match="odd has no logs"):
        scheduler.log_iter("app-1", "worker")


def test_an_app_that_the_plugin_refuses(install: Any) -> None:
    install("")
    runner = Runner("torchx")
    with pytest.raises(AppDefError, match="No resource for role: worker"):
        runner.dryrun(AppDef("app", [Role("worker", "image", entrypoint="true")]), "odd", {})
    assert "app" in str(runner.dryrun(APP, "odd", {}))
    runner.close()


def test_options_are_asked_again_after_a_false_alarm(install: Any) -> None:
    install(
        "asked = 0\n"
        "def _run_opts(self):\n"
        "    Odd.asked += 1\n"
        "    if Odd.asked in (1, 2, 4):\n"
        "        raise SystemError('AST constructor recursion depth mismatch')\n"
        "    opts = runopts()\n"
        "    opts.add('queue', type_=str, help='where', default='fast')\n"
        "    return opts"
    )
    scheduler = registry.create_scheduler("odd", "torchx")
    assert scheduler.run_opts().resolve({})["queue"] == "fast"
    assert "app" in str(scheduler.submit_dryrun(APP, {}))
