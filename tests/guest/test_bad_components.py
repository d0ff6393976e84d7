"""Components that misbehave: each is a clear message, and nothing of it is left or reaches this process."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.component_files import ComponentFile
from support.waiting import PATIENCE, wait_until

from torchx_tui.components.build import build_app
from torchx_tui.guest.pool import pool
from torchx_tui.specs.errors import ComponentLoadError

HEAD = "import os, signal, subprocess, sys, threading, time\n"


@pytest.fixture(autouse=True)
def left_nothing(tmp_path):
    yield
    pool.close()
    wait_until(lambda: not left_in(tmp_path), "the end of all that a component started")


def left_in(folder: Path) -> list[int]:
    """Return the processes whose working folder is that of the test."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and Path(process.cwd()) == folder:
                left.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return left


def component(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f'{HEAD}{head}\ndef f() -> AppDef:\n    """Do."""\n{lines}\n    return AppDef("fine", [Role("r", "i")])\n'


def failure(component_file: ComponentFile, text: str) -> ComponentLoadError:
    component_file.write(text)
    with pytest.raises(ComponentLoadError) as caught:
        build_app(component_file.name("f"), {})
    return caught.value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("os._exit(3)", "its process ended with exit code 3 before it returned"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "its process was ended by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "its process was ended by SIGSEGV"),
        ("sys.exit('no')", "it called sys.exit('no')"),
        ("print('usage: wrong'); sys.exit(2)", "it called sys.exit(2). It printed last: usage: wrong"),
        (
            "os.write(1, b'from a library'); os._exit(1)",
            "exit code 1 before it returned. It printed last: from a library",
        ),
        ("os.write(2, b'\\33[2J\\33]0;mine\\7'); 1 / 0", "ZeroDivisionError: division by zero"),
        ("os.write(2, b'\\33[31mall \\7red\\n'); os._exit(1)", "It printed last: all red"),
        ("input()", "EOFError"),
        ("import getpass; getpass.getpass()", "EOFError"),
        ("open('/dev/tty')", "/dev/tty: No such device or address"),
        ("def again(): again()\nagain()", "RecursionError"),
        ("return 5", "a component returns AppDef, this one returned int"),
        ("return AppDef(name=5)", "name must be a text, not int"),
        ("return AppDef('a', [5])", "roles is not a list of Role"),
        ("return AppDef('a', [Role('r', 'i', num_replicas='two')])", "num_replicas must be an integer, not str"),
        ("return AppDef('a', [Role('r', 'i', args=[object()])])", "role r: args: a object cannot be used there"),
        (
            "return AppDef('a', [Role('r', 'i', metadata={'x': {1}})])",
            "role r: metadata.x: a set cannot be written as JSON",
        ),
        ("return AppDef('a', [Role('r', 'i')] * 100_000)", "it has 100,000 roles, more than 10,000"),
        ("return AppDef('a', [Role('r', 'i', num_replicas=200_000)])", "num_replicas is 200000, more than 100,000"),
        (
            "return AppDef('a', [Role('r', 'x' * 1_000_000)])",
            "role r: image: 1,000,002 characters, more than 1,000,000",
        ),
        ("return AppDef('a', [], {'x': 'x' * 1_000_000})", "metadata: 1,000,009 characters, more than 1,000,000"),
        ("import json; json.loads = json.dumps = lambda *a, **k: 'x' * (40 << 20)", "larger than 32 MiB"),
        ("os.closerange(3, 5000)", "its process"),
    ],
)
def test_it_says_what_happened(component_file, body, reason):
    error = failure(component_file, component(body))
    assert reason in str(error)
    assert "\33" not in str(error)
    # The next question has an answer.
    component_file.write(component("pass"))
    assert build_app(component_file.name("f"), {}).name == "fine"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (component("while True:\n    time.sleep(1)"), "time.sleep(1)"),
        (component("while True: pass  # spins"), "pass  # spins"),
        (component("pass", head="time.sleep(1000)"), "time.sleep(1000)"),
        (component("subprocess.run(['sleep', '1000'])"), "subprocess.run"),
        (
            component(
                "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pthread_sigmask(0, range(1, 65)); time.sleep(99)"
            ),
            "SIG_IGN",
        ),
    ],
    ids=["sleeps", "spins", "at import", "waits for a program", "signals blocked"],
)
def test_what_hangs_is_ended_and_says_where(component_file, monkeypatch, text, line, use_settings):
    monkeypatch.chdir(component_file.path.parent)
    # On a busy machine it may not be there yet when its time is over.
    for seconds in (1, 4, 16, 64):
        use_settings(timeout_s=seconds)
        error = failure(component_file, text)
        if error.line == component_file.line_of(line):
            break
    assert error.reason.startswith(f"it did not return within {seconds} s and was stopped")
    assert error.line == component_file.line_of(line)
    wait_until(lambda: not left_in(component_file.path.parent), "the end of the guest")


@pytest.mark.parametrize(
    "body",
    [
        "threading.Thread(target=time.sleep, args=(1000,)).start()",
        "subprocess.Popen(['sleep', '1000'])",
        "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
        "for _ in range(50):\n    if not os.fork():\n        os.setsid()\n        time.sleep(1000)",
        "import atexit; atexit.register(time.sleep, 1000)",
    ],
    ids=["a thread", "a program", "a daemon", "fifty forks", "at exit"],
)
def test_nothing_that_it_started_is_left(component_file, monkeypatch, body):
    monkeypatch.chdir(component_file.path.parent)
    component_file.write(component(body))
    assert build_app(component_file.name("f"), {}).name == "fine"
    assert left_in(component_file.path.parent)
    pool.close()
    wait_until(lambda: not left_in(component_file.path.parent), "the end of all that it started")


def test_it_cannot_end_the_parent_of_its_process(component_file, monkeypatch):
    monkeypatch.chdir(component_file.path.parent)
    component_file.write(component("os.kill(os.getppid(), signal.SIGTERM)"))
    assert build_app(component_file.name("f"), {}).name == "fine"
    error = failure(component_file, component("os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)"))
    assert error.reason.endswith("its process was ended by SIGKILL")


def test_its_process_is_not_ours(component_file, tmp_path):
    body = """
os.chdir("/"); os.environ["CHANGED"] = "1"; os.environ.pop("PATH", None)
sys.stdout = sys.stderr = None
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen.__init__ = None
sys.path.clear()
os.remove(__file__)
"""
    before = os.getcwd(), dict(os.environ), sys.stdout, signal.getsignal(signal.SIGINT), list(sys.path)
    component_file.write(component(body))
    assert build_app(component_file.name("f"), {}).name == "fine"
    assert before == (os.getcwd(), dict(os.environ), sys.stdout, signal.getsignal(signal.SIGINT), list(sys.path))
    # Nor does what one call changed reach the next.
    component_file.write(component("return AppDef(os.getcwd() + os.environ.get('CHANGED', ''))"))
    assert build_app(component_file.name("f"), {}).name == os.getcwd()


def test_the_environment_is_as_it_was_at_each_call(component_file):
    component_file.write(
        component("seen = os.environ.get('SEEN', 'nothing'); os.environ['SEEN'] = 'x'; return AppDef(seen)")
    )
    assert [build_app(component_file.name("f"), {}).name for _ in range(2)] == ["nothing", "nothing"]


def test_ten_megabytes_of_output(component_file):
    component_file.write(component("for _ in range(1000): print('x' * 10_000)\nos.write(2, b'y' * 1_000_000)"))
    assert build_app(component_file.name("f"), {}).name == "fine"


def test_memory_beyond_the_limit(component_file, use_settings):
    use_settings(memory_gigabytes=1.0)
    error = failure(component_file, component("x = bytearray(2 << 30)"))
    assert "raise memory_gigabytes of [components] in config.toml" in error.reason


def test_memory_that_is_only_reserved_is_not_counted(component_file, use_settings):
    use_settings(memory_gigabytes=1.0)
    reserve = "import mmap\nkept = mmap.mmap(-1, 8 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)"
    component_file.write(component(reserve))
    assert build_app(component_file.name("f"), {}).name == "fine"


def test_a_text_that_cannot_be_printed(component_file):
    head = "class Bad(str):\n    def __str__(self): raise OSError('no')\n    __repr__ = __str__\n"
    component_file.write(component("return AppDef(Bad('name'), [Role(Bad('r'), Bad('i'), env={'A': Bad('b')})])", head))
    app = build_app(component_file.name("f"), {})
    assert (app.name, type(app.name), app.roles[0].env) == ("name", str, {"A": "b"})


def test_numbers_and_paths_of_other_classes_become_plain(component_file):
    head = "import pathlib\nclass Two:\n    def __index__(self): return 2\n"
    component_file.write(
        component("return AppDef('a', [Role('r', 'i', args=[pathlib.Path('x')], num_replicas=Two())])", head)
    )
    (role,) = build_app(component_file.name("f"), {}).roles
    assert (role.args, role.num_replicas) == (["x"], 2)


def test_overrides_are_resolved_and_a_pre_proc_is_refused(component_file):
    component_file.write(component("return AppDef('a', [Role('r', 'i', overrides={'image': lambda: 'resolved'})])"))
    assert build_app(component_file.name("f"), {}).roles[0].image == "resolved"
    head = "class Mine(Role):\n    def pre_proc(self, scheduler, dryrun_info): return dryrun_info\n"
    error = failure(component_file, component("return AppDef('a', [Mine('r', 'i')])", head))
    assert "role r: it has a pre_proc of its own" in error.reason


def test_one_that_hangs_holds_no_other_up(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hanging = ComponentFile(tmp_path / "a" / "jobs.py").write(component("time.sleep(1000)"))
    fine = ComponentFile(tmp_path / "b" / "jobs.py").write(component("pass"))
    given_up = threading.Event()
    errors: list[BaseException] = []

    def check() -> None:
        if given_up.is_set():
            raise KeyError("given up")

    def ask() -> None:
        try:
            build_app(hanging.name("f"), {}, check)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert build_app(fine.name("f"), {}).name == "fine"
    given_up.set()
    thread.join(PATIENCE)
    assert [type(error) for error in errors] == [KeyError]


def test_a_cancelled_component_is_ended(component_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started = tmp_path / "started"
    text = f"open({str(started)!r}, 'w').close(); subprocess.run(['sleep', '1000'], start_new_session=True)"
    component_file.write(component(text))

    def cancel_when_started() -> None:
        if started.exists():
            raise KeyError("cancelled")

    with pytest.raises(KeyError):
        build_app(component_file.name("f"), {}, cancel_when_started)
    wait_until(lambda: not left_in(tmp_path), "the end of the component and of what it started")
    component_file.write(component("pass"))
    assert build_app(component_file.name("f"), {}).name == "fine"


def test_cancelling_ends_only_its_own_call(component_file, tmp_path):
    """Of two calls of one file, the second waits for the first and is answered after that was cancelled."""
    started = tmp_path / "started"
    slow = f"""
def slow() -> AppDef:
    open({str(started)!r}, "w").close()
    time.sleep(1000)
"""
    component_file.write(component("pass", head=slow))
    cancelled = threading.Event()
    errors: list[BaseException] = []

    def check() -> None:
        if cancelled.is_set():
            raise KeyError("cancelled")

    def build_slow() -> None:
        try:
            build_app(component_file.name("slow"), {}, check)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=build_slow)
    thread.start()
    wait_until(started.exists, "the start of the slow component")

    def cancel_first() -> None:
        cancelled.set()

    assert build_app(component_file.name("f"), {}, cancel_first).name == "fine"
    thread.join(PATIENCE)
    assert [type(error) for error in errors] == [KeyError]


def test_an_evicted_worker_is_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        file = ComponentFile(tmp_path / str(number) / "jobs.py")
        names.append(file.write(component("return AppDef(str(os.getpid()))")).name("f"))
    processes = [int(build_app(name, {}).name) for name in names]
    wait_until(lambda: not psutil.pid_exists(processes[0]), "the end of the least recently used")
    assert all(psutil.pid_exists(process) for process in processes[1:])


def test_more_than_1024_descriptors(component_file):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < 1500:
        pytest.skip(f"only {limits[1]} descriptors are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 1500), limits[1]))
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        component_file.write(component("pass"))
        assert build_app(component_file.name("f"), {}).name == "fine"
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_it_is_said_that_an_answer_takes_long(component_file, use_settings):
    use_settings(slow_s=0.2)
    said: list[str] = []
    is_said = component_file.path.with_name("said")

    def report(words: str) -> None:
        said.append(words)
        is_said.touch()

    component_file.write(component(f"while not os.path.exists({str(is_said)!r}): time.sleep(0.01)"))
    build_app(component_file.name("f"), {}, lambda: None, report)
    assert said == ["no answer for 0.2 s, still waiting"]


HOST = """
import sys, time
from torchx_tui.components.build import build_app
build_app(sys.argv[1], {})
print("asked", flush=True)
time.sleep(1000)
"""


def test_it_ends_with_a_host_that_is_killed(component_file, tmp_path):
    component_file.write(component("subprocess.Popen(['sleep', '1000'], start_new_session=True)"))
    host: Any = subprocess.Popen(
        [sys.executable, "-c", HOST, component_file.name("f")], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    with host:
        assert host.stdout.readline() == "asked\n"
        assert len(left_in(tmp_path)) >= 3
        host.kill()
    wait_until(lambda: not left_in(tmp_path), "the end of the guest")


def test_it_ends_when_nobody_asks(component_file, monkeypatch, use_settings):
    # It must not end between its start and the first question.
    use_settings(idle_s=8.0)
    monkeypatch.chdir(component_file.path.parent)
    component_file.write(component("return AppDef(str(os.getpid()))"))
    first = build_app(component_file.name("f"), {}).name
    wait_until(lambda: not psutil.pid_exists(int(first)), "its end")
    assert build_app(component_file.name("f"), {}).name != first
