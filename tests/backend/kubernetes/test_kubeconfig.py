"""Users of a kubeconfig: their files, and programs that give a token, without the terminal and bounded in time."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from backend.kubernetes.kubeconfigs import write_kubeconfig
from backend.kubernetes.tables import table
from support.background import in_background
from support.processes import is_gone
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.kube.api_server import ApiServer
from torchx_tui.backends.kube.kubeconfig import CredentialPlugin
from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError

VERSION = "client.authentication.k8s.io/v1"
TOKEN = f'{{"apiVersion": "{VERSION}", "kind": "ExecCredential", "status": {{"token": "t-0"}}}}'


@pytest.fixture
def user(tmp_path, monkeypatch):
    """Return what writes the kubeconfig of a user."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return lambda entries, *url: write_kubeconfig(tmp_path / "kubeconfig", entries, *url)


@pytest.fixture
def plugin(user, tmp_path):
    """Return what writes the kubeconfig of a user who is known by the answer of a Python script."""

    def write(script, *url, **settings):
        (tmp_path / "plugin.py").write_text(f"import sys\nTOKEN = {TOKEN!r}\n{script}\n")
        user({"exec": {"apiVersion": VERSION, "command": sys.executable, "args": ["plugin.py"], **settings}}, *url)

    return write


@pytest.fixture
def scripted(server):
    server.gives("/version", {"gitVersion": "v1"})
    return server


def tokens(scripted):
    return [asked.headers["Authorization"].removeprefix("Bearer ") for asked in scripted.asked]


def ask(server=None):
    return (server or ApiServer()).request("GET", "/version")


def refused(words):
    return pytest.raises(BackendUnavailableError, match=words)


# Asks for a password on the terminal.
ASKS = """
sys.stderr.write("PASSWORD-PROMPT: ")
sys.stderr.flush()
try:
    open("/dev/tty", "w").write("TO-THE-TERMINAL")
except OSError:
    pass
sys.exit(f"nobody is logged in: read {sys.stdin.readline()!r}\\x1b[31m")
"""

REQUEST = """
import sys
from torchx_tui.backends.kube.api_server import ApiServer
try:
    ApiServer().request("GET", "/version")
except Exception as error:
    open(sys.argv[1], "w").write(str(error))
"""


def test_program_has_no_terminal(plugin, tmp_path):
    plugin(ASKS)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", REQUEST, str(tmp_path / "error")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    shown = b""
    # A terminal whose programs have ended cannot be read on Linux.
    with suppress(OSError):
        while b"PASSWORD" not in shown and (data := os.read(ours, 1000)):
            shown += data
    process.kill()
    process.wait()
    os.close(ours)
    assert shown == b""
    said = (tmp_path / "error").read_text()
    assert "the API server of test does not know who you are: the kubeconfig has no token" in said
    assert "failed (exit code 1): PASSWORD-PROMPT: nobody is logged in: read ''" in said
    assert "\x1b" not in said


# Programs that hang

HANGS = """
import os, pathlib, subprocess, time
child = subprocess.Popen(["sleep", "600"])
made = pathlib.Path("pids.part")
made.write_text(f"{os.getpid()} {child.pid}")
made.rename("pids")
time.sleep(600)
"""


class Hanging:
    def __init__(self, folder):
        self.file = folder / "pids"

    def pids(self):
        wait_until(self.file.exists, "the program runs")
        return [int(pid) for pid in self.file.read_text().split()]

    def is_gone(self):
        return all(map(is_gone, self.pids()))


@pytest.fixture
def hanging(plugin, tmp_path):
    """Give a program that hangs with a process that it started."""
    plugin(HANGS)
    made = Hanging(tmp_path)
    yield made
    for pid in made.pids() if made.file.exists() else ():
        if not is_gone(pid):
            os.kill(pid, signal.SIGKILL)


def in_threads(*acts):
    """Run functions in threads; errors of a scheduler are no matter."""

    def run(act):
        with suppress(SchedulerError):
            act()

    return [in_background(partial(run, act)) for act in acts]


def test_close_ends_a_hanging_program(hanging):
    server = ApiServer()
    asking = in_threads(*[lambda: ask(server)] * 2)
    pids = hanging.pids()
    in_background(server.close).result(10.0)
    wait_until(hanging.is_gone, "the program and what it started are gone")
    # A request that waited for the first program starts no other.
    for one in asking:
        one.result(PATIENCE)
    assert hanging.pids() == pids


def test_close_of_a_scheduler_ends_a_hanging_program(hanging):
    scheduler = create_scheduler("torchx")
    in_threads(scheduler.list, lambda: scheduler.describe("ns:job"), scheduler.check)
    unsubscribe = scheduler.subscribe(lambda: None)
    hanging.pids()
    in_background(lambda: (unsubscribe(), scheduler.close())).result(5.0)
    wait_until(hanging.is_gone, "the program is gone")


def test_slow_program_is_ended(hanging):
    with refused(r"gave no answer within 1 s: run it in a shell"):
        ask(ApiServer(plugin=CredentialPlugin(timeout=1.0)))
    if hanging.file.exists():
        wait_until(hanging.is_gone, "it is gone")


# Answers of programs

COUNTS = """
import json, os, pathlib
count = len(list(pathlib.Path(".").glob("asked-*")))
pathlib.Path(f"asked-{count}").touch()
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path("info").write_text(json.dumps([info, os.environ["COLOUR"]]))
answer = json.loads(TOKEN.replace("t-0", f"t-{count}"))
if os.environ.get("EXPIRES"):
    answer["status"]["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps(answer))
"""


def test_token_is_kept_until_it_expires(plugin, scripted, tmp_path, monkeypatch):
    plugin(COUNTS, scripted.url, env=[{"name": "COLOUR", "value": "red"}], provideClusterInfo=True)
    expires = datetime.now(timezone.utc) + timedelta(hours=1)
    monkeypatch.setenv("EXPIRES", expires.strftime("%Y-%m-%dT%H:%M:%SZ"))
    server = ApiServer()
    ask(server)
    ask(server)
    monkeypatch.setattr(time, "time", lambda: expires.timestamp() - 30)
    ask(server)
    server.close()
    assert tokens(scripted) == ["t-0", "t-0", "t-1"]
    info, colour = json.loads((tmp_path / "info").read_text())
    assert (info["kind"], info["apiVersion"], colour) == ("ExecCredential", VERSION, "red")
    assert info["spec"] == {"interactive": False, "cluster": {"server": scripted.url}}


def test_refused_token_is_asked_for_again(plugin, scripted):
    plugin(COUNTS, scripted.url, env=[{"name": "COLOUR", "value": "red"}])
    answers = iter([(401, {}), (200, {"a": 1}), (200, {"a": 2})])
    scripted.answers["GET", "/version"] = lambda asked: next(answers)
    server = ApiServer()
    assert [ask(server), ask(server)] == [{"a": 1}, {"a": 2}]
    assert tokens(scripted) == ["t-0", "t-1", "t-1"]


@table("credentials.yaml", "answers", "script words")
def test_answer_without_a_credential(plugin, script, words):
    plugin(script)
    with refused(words):
        ask()


def test_missing_program(plugin):
    plugin("", command="/nosuch/get-token", installHint="get it\x1b[2J at example.org")
    with refused("/nosuch/get-token, cannot be started: No such file or directory: get it") as raised:
        ask()
    assert "\x1b" not in str(raised.value)


def test_program_gives_a_certificate(plugin, tmp_path, caplog):
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    answer = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})
    plugin(f"open('runs', 'a').write('once.'); print({answer!r})", "https://127.0.0.1:9")
    settings = ApiServer().configuration()
    assert Path(settings.cert_file or "").read_text() == "CERT"
    assert Path(settings.key_file or "").read_text() == "KEY"
    # The package kubernetes would run it as well, and write to the screen.
    assert ((tmp_path / "runs").read_text(), caplog.records) == ("once.", [])


# Files and tokens


@pytest.mark.parametrize("entry", ["tokenFile", "client-certificate", "client-key"])
def test_files_are_bounded(entry, user, tmp_path):
    user({entry: "file"})
    os.mkfifo(tmp_path / "file")
    with refused("it is a named pipe, not a regular file"):
        ask()
    (tmp_path / "file").unlink()
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 100 << 30)
    with refused("it has more than 1 MB"):
        ask()


def test_token_with_a_line_break_is_not_shown(user):
    user({"token": "abcdefgh\nS3CRET"})
    with refused("has a line break") as raised:
        ask()
    assert "S3CRET" not in str(raised.value)


def test_token_that_ends_in_a_line_break_is_used(user, scripted):
    user({"token": "abc\n"}, scripted.url)
    ask()
    assert tokens(scripted) == ["abc"]


def test_changed_kubeconfig_is_read_again(user, tmp_path):
    user({"token": "abc"})
    server = ApiServer()
    assert (server.context, server.namespace) == ("test", "default")
    write_kubeconfig(tmp_path / "kubeconfig", {"token": "abc"}, namespace="space")
    assert server.namespace == "space"


def test_first_current_context_is_used(tmp_path, monkeypatch):
    for name in ("one", "two"):
        text = write_kubeconfig(tmp_path / name, {"token": name}, f"http://{name}").read_text()
        (tmp_path / name).write_text(text.replace('"test"', f'"{name}"'))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    server = ApiServer()
    assert (server.context, server.configuration().host) == ("one", "http://one")
