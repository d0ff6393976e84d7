"""Programs that a kubeconfig names for a token: without the terminal, bounded in time, ended with the server."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from support.processes import is_gone
from support.scripted_server import scripted_server
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.kubernetes.api_server import ApiServer
from torchx_tui.backends.kubernetes.kubeconfig import CredentialPlugin
from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.specs import BackendUnavailableError, SchedulerError

VERSION = "client.authentication.k8s.io/v1"
TOKEN = f'{{"apiVersion": "{VERSION}", "kind": "ExecCredential", "status": {{"token": "t-%s"}}}}'


def write_kubeconfig(folder, script, url="http://127.0.0.1:9", **settings):
    """Write a kubeconfig whose user is known by the answer of a Python script."""
    (folder / "plugin.py").write_text(script)
    user = {"apiVersion": VERSION, "command": sys.executable, "args": ["plugin.py"], **settings}
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"exec": user}}],
            }
        )
    )
    return path


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    def write(script, url="http://127.0.0.1:9", **settings):
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, script, url, **settings)))

    return write


# Asks for what is typed, as one does that wants a password.
ASKS = """
import sys
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
from torchx_tui.backends.kubernetes.api_server import ApiServer
try:
    ApiServer().request("GET", "/version")
except Exception as error:
    open(sys.argv[1], "w").write(str(error))
"""


def test_a_program_has_no_terminal_and_its_words_are_in_the_error(plugin, tmp_path):
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
    try:
        # At the end of a terminal whose programs have ended, Linux says that it cannot be read.
        while data := os.read(ours, 1000):
            shown += data
            if b"PASSWORD" in shown:
                break
    except OSError:
        pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert shown == b""
    said = (tmp_path / "error").read_text()
    assert "the API server of test does not know who you are: the kubeconfig has no token" in said
    assert "failed (exit code 1): PASSWORD-PROMPT: nobody is logged in: read ''" in said
    assert "\x1b" not in said


HANGS = """
import os, pathlib, subprocess, time
child = subprocess.Popen(["sleep", "600"])
made = pathlib.Path("pids.part")
made.write_text(f"{os.getpid()} {child.pid}")
made.rename("pids")
time.sleep(600)
"""


def pids_of(folder):
    wait_until((folder / "pids").exists, "the program runs")
    return [int(pid) for pid in (folder / "pids").read_text().split()]


@pytest.fixture
def ended(tmp_path):
    yield
    if (tmp_path / "pids").exists():
        for pid in pids_of(tmp_path):
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.usefixtures("ended")
def test_closing_ends_a_program_that_hangs(plugin, tmp_path):
    plugin(HANGS)
    server = ApiServer()
    raised: list[Exception] = []

    def request():
        try:
            server.request("GET", "/version")
        except BackendUnavailableError as error:
            raised.append(error)

    threads = [threading.Thread(target=request, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    pids = pids_of(tmp_path)
    closing = threading.Thread(target=server.close, daemon=True)
    began = time.monotonic()
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert time.monotonic() - began < 10
    wait_until(lambda: all(map(is_gone, pids)), "the program and what it started are gone", PATIENCE)
    # Who waited for the first one starts no other.
    for thread in threads:
        thread.join(PATIENCE)
    assert len(raised) == 2
    assert [int(pid) for pid in (tmp_path / "pids").read_text().split()] == pids


@pytest.mark.usefixtures("ended")
def test_a_program_that_takes_too_long_is_ended(plugin, tmp_path):
    plugin(HANGS)
    server = ApiServer(plugin=CredentialPlugin(timeout=1.0))
    with pytest.raises(BackendUnavailableError, match=r"gave no answer within 1 s: run it in a shell"):
        server.request("GET", "/version")
    if (tmp_path / "pids").exists():
        wait_until(lambda: all(map(is_gone, pids_of(tmp_path))), "it is gone", PATIENCE)


COUNTS = f"""
import json, os, pathlib
count = len(list(pathlib.Path(".").glob("asked-*")))
pathlib.Path(f"asked-{{count}}").touch()
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path("info").write_text(json.dumps([info, os.environ["COLOUR"]]))
answer = json.loads('''{TOKEN}''' % count)
if os.environ.get("EXPIRES"):
    answer["status"]["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps(answer))
"""


def test_a_token_is_kept_until_it_expires(plugin, tmp_path, monkeypatch):
    with scripted_server() as scripted:
        scripted.answers["GET", "/version"] = 200, {"gitVersion": "v1"}
        env = [{"name": "COLOUR", "value": "red"}]
        plugin(COUNTS, scripted.url, env=env, provideClusterInfo=True)
        expires = datetime.now(timezone.utc) + timedelta(hours=1)
        monkeypatch.setenv("EXPIRES", expires.strftime("%Y-%m-%dT%H:%M:%SZ"))
        server = ApiServer()
        server.request("GET", "/version")
        server.request("GET", "/version")
        monkeypatch.setattr(time, "time", lambda: expires.timestamp() - 30)
        server.request("GET", "/version")
        server.close()
    assert [asked.headers["Authorization"] for asked in scripted.asked] == ["Bearer t-0", "Bearer t-0", "Bearer t-1"]
    info, colour = json.loads((tmp_path / "info").read_text())
    assert colour == "red"
    assert (info["kind"], info["apiVersion"]) == ("ExecCredential", VERSION)
    assert info["spec"] == {"interactive": False, "cluster": {"server": scripted.url}}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('hello')", "printed no credential: it is not an ExecCredential"),
        ("print('[]')", "printed no credential"),
        (f"print('''{TOKEN}'''.replace('/v1', '/v1alpha1'))", "speaks client.authentication.k8s.io/v1alpha1, and the"),
        (f"print('''{TOKEN}'''.replace('token', 'tok'))", "neither a token nor a certificate and key"),
        ("import sys; sys.exit('bad token=s3cret-value')", r"failed \(exit code 1\): bad token=\*\*\*\*\*\*\*\*$"),
        ("while True: print('x' * 65536)", "printed more than 1 MB"),
        ("import sys\nwhile True: sys.stderr.write('x' * 65536)", "printed more than 1 MB"),
        (
            f"print({TOKEN.replace('t-%s', 'abc~nS3CRET')!r}.replace('~n', chr(92) + 'n'))",
            "has a line break or a control char",
        ),
    ],
)
def test_a_program_that_gives_no_credential(plugin, script, words):
    plugin(script)
    with pytest.raises(BackendUnavailableError, match=words):
        ApiServer().request("GET", "/version")


def write_user(folder, url, **user):
    """Write a kubeconfig whose user has these entries."""
    path = folder / "kubeconfig"
    path.write_text(json.dumps({
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }))  # fmt: skip
    return path


@pytest.mark.parametrize("entry", ["tokenFile", "client-certificate", "client-key"])
def test_files_of_a_kubeconfig_are_bounded(entry, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(write_user(tmp_path, "http://127.0.0.1:9", **{entry: "file"})))
    os.mkfifo(tmp_path / "file")
    with pytest.raises(BackendUnavailableError, match="it is a named pipe, not a regular file"):
        ApiServer().request("GET", "/version")
    (tmp_path / "file").unlink()
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 100 << 30)
    with pytest.raises(BackendUnavailableError, match="it has more than 1 MB"):
        ApiServer().request("GET", "/version")


def test_token_with_a_line_break_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(write_user(tmp_path, "http://127.0.0.1:9", token="abcdefgh\nS3CRET")))
    with pytest.raises(BackendUnavailableError, match="has a line break") as raised:
        ApiServer().request("GET", "/version")
    assert "S3CRET" not in str(raised.value)


def test_token_that_ends_in_a_line_break_is_used(tmp_path, monkeypatch):
    with scripted_server() as scripted:
        scripted.answers["GET", "/version"] = 200, {}
        monkeypatch.setenv("KUBECONFIG", str(write_user(tmp_path, scripted.url, token="abc\n")))
        ApiServer().request("GET", "/version")
    assert scripted.asked[0].headers["Authorization"] == "Bearer abc"


def test_a_program_that_is_not_there(plugin):
    plugin("", command="/nosuch/get-token", installHint="get it\x1b[2J at example.org")
    with pytest.raises(BackendUnavailableError) as raised:
        ApiServer().request("GET", "/version")
    assert "/nosuch/get-token, cannot be started: No such file or directory: get it" in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_program_gives_a_certificate(plugin, tmp_path, caplog):
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    runs = tmp_path / "runs"
    plugin(f"open({str(runs)!r}, 'a').write('once.'); print('''{json.dumps(answer)}''')", "https://127.0.0.1:9")
    settings = ApiServer()._configuration()[0]
    assert Path(settings.cert_file or "").read_text() == "CERT"
    assert Path(settings.key_file or "").read_text() == "KEY"
    # The package would run it as well, and write what it does not like where the screen is.
    assert (runs.read_text(), caplog.records) == ("once.", [])


def test_the_first_current_context_is_taken_as_kubectl_takes_it(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).write_text(
            json.dumps(
                {
                    "current-context": name,
                    "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                    "clusters": [{"name": name, "cluster": {"server": f"http://{name}"}}],
                    "users": [{"name": name, "user": {"token": name}}],
                }
            )
        )
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'one'}:{tmp_path / 'two'}")
    server = ApiServer()
    assert server.context == "one"
    assert server.configuration().host == "http://one"


@pytest.mark.usefixtures("ended")
def test_a_scheduler_is_closed_while_a_program_hangs(plugin, tmp_path):
    plugin(HANGS)
    scheduler = create_scheduler("torchx")

    def ask(act):
        with suppress(SchedulerError):
            act()

    acts = (scheduler.list, lambda: scheduler.describe("ns:job"), scheduler.check)
    for act in acts:
        threading.Thread(target=ask, args=(act,), daemon=True).start()
    unsubscribe = scheduler.subscribe(lambda: None)
    pids = pids_of(tmp_path)
    closing = threading.Thread(target=lambda: (unsubscribe(), scheduler.close()), daemon=True)
    closing.start()
    closing.join(5.0)
    assert not closing.is_alive()
    wait_until(lambda: all(map(is_gone, pids)), "the program is gone", PATIENCE)
