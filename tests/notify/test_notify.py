"""Telling of jobs when nobody looks: on each way, once, and so that nothing waits for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from email import message_from_string
from pathlib import Path

import psutil
import pytest
from support.hostile_server import hostile_server
from support.hung import hung_snapshot
from support.waiting import PATIENCE, wait_until

from torchx_tui.diagnosis.progress.stalls import SHORTEST_PAUSE_S
from torchx_tui.diagnosis.stacks.kept import keep_snapshot
from torchx_tui.doctor.config_checks import notify_findings
from torchx_tui.notify.channels import deliver, webhook_body
from torchx_tui.notify.helper import is_wanted, send_once, terminal_sequence, want
from torchx_tui.notify.message import Message
from torchx_tui.settings.config import NotifySettings, Settings
from torchx_tui.settings.helper_request import Happened, helper_argv, helper_request
from torchx_tui.settings.make_runner import make_runner
from torchx_tui.specs.roles import AppDef, Role

MESSAGE = Message("failure", "slurm://torchx/7", "llama", "FAILED", "out of memory <!channel>", ("step 1", "killed"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o700)
    return str(path)


def test_a_webhook_takes_its_secrets_from_the_environment(hook, monkeypatch):
    monkeypatch.setenv("HOOK_PATH", "T0/secret")
    monkeypatch.setenv("HOOK_TOKEN", "abc")
    settings = NotifySettings(webhook=f"{hook.url}/$HOOK_PATH", headers={"Authorization": "Bearer ${HOOK_TOKEN}"})
    assert deliver(MESSAGE, settings) == {"webhook 127.0.0.1": ""}
    path, headers, body = hook.posted[0]
    assert (path, headers["Authorization"]) == ("/T0/secret", "Bearer abc")
    assert body["handle"] == MESSAGE.handle
    assert body["lines"] == ["step 1", "killed"]
    assert "out of memory" in body["text"]


def test_forms_of_known_hosts():
    assert "llama failed: out of memory &lt;!channel&gt;" in str(webhook_body("hooks.slack.com", MESSAGE)["text"])
    assert webhook_body("discord.com", MESSAGE)["allowed_mentions"] == {"parse": []}


@pytest.mark.parametrize(
    ("answers", "tries", "words"),
    [([503, 200], 2, ""), ([503], 3, "503 Service Unavailable; tried 3 times"), ([404], 1, "404"), ([302], 1, "302")],
)
def test_a_webhook_is_tried_again_a_bounded_number_of_times(hook, monkeypatch, answers, tries, words):
    monkeypatch.setattr("torchx_tui.notify.channels.FIRST_WAIT_S", 0.01)
    hook.answers = answers
    [error] = deliver(MESSAGE, NotifySettings(webhook=f"{hook.url}/secret"), tries=3).values()
    assert len(hook.posted) == tries
    assert (words in error) if words else error == ""
    assert "secret" not in error


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 403 /T0/secret \x1b[2J\x9b31m\r\nContent-Length: 0\r\n\r\n", "answered 403 Forbidden"),
        (b"HTTP/1.1 499 /T0/secret\r\nContent-Length: 0\r\n\r\n", "answered 499"),
        (b"/T0/secret \x1b[2J\r\n\r\n", "cannot be reached: BadStatusLine"),
    ],
)
def test_words_of_a_webhooks_server_are_not_logged(answer, words):
    with hostile_server(lambda _: iter([answer])) as address:
        [error] = deliver(MESSAGE, NotifySettings(webhook=f"http://{address}/T0/secret"), tries=1).values()
    assert error == f"127.0.0.1 {words}"


def test_error_of_a_command_is_masked_and_plain(tmp_path):
    program = script(tmp_path / "tell", "import sys\nsys.exit('\\x1b[2Jpassword=hunter22')")
    [error] = deliver(MESSAGE, NotifySettings(command=(program,)), tries=1).values()
    assert "ended with exit code 1" in error
    assert "hunter22" not in error
    assert "\x1b" not in error


def test_a_webhook_that_hangs_holds_up_nothing(hook, tmp_path):
    hook.answers = [0]
    # A shell starts quickly on a busy machine, too.
    program = str(tmp_path / "told")
    Path(program).write_text(f"#!/bin/sh\necho told > '{tmp_path}/out'\n")
    Path(program).chmod(0o700)
    settings = NotifySettings(webhook=hook.url, command=(program,))
    results = deliver(MESSAGE, settings, deadline_s=5)
    assert results["webhook 127.0.0.1"] == "no answer within 5 s"
    assert (tmp_path / "out").read_text() == "told\n"


def test_a_command_and_mail(tmp_path, monkeypatch):
    out = tmp_path / "out.json"
    keep = (
        f"import json, os, sys\njson.dump([sys.argv[1:], sys.stdin.read(), dict(os.environ)], open({str(out)!r}, 'w'))"
    )
    program = script(tmp_path / "command", keep)
    assert deliver(MESSAGE, NotifySettings(command=(program, "$HOME; true")), tries=1) == {f"command {program}": ""}
    arguments, stdin, environ = json.loads(out.read_text())
    assert arguments == ["$HOME; true"]
    assert json.loads(stdin)["sentence"] == MESSAGE.sentence
    assert environ["TORCHX_TUI_STATE"] == "FAILED"
    script(tmp_path / "sendmail", keep)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert deliver(MESSAGE, NotifySettings(mail="me@example.org"), tries=1) == {"mail to me@example.org": ""}
    arguments, mail, _ = json.loads(out.read_text())
    assert arguments == ["-i", "--", "me@example.org"]
    assert "Subject: llama failed" in mail
    assert "killed" in mail


def test_what_cannot_work_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    settings = NotifySettings(command=(str(tmp_path / "none"),), webhook="http://127.0.0.1:9/$NOT_SET")
    errors = deliver(MESSAGE, settings)
    assert "cannot be started" in errors[f"command {tmp_path / 'none'}"]
    assert "NOT_SET is not set" in errors["webhook 127.0.0.1"]
    malformed = deliver(MESSAGE, NotifySettings(command=("true",), webhook="http://[bad"), tries=1)
    assert malformed["command true"] == ""
    assert "not a URL" in malformed["webhook"]
    said = [finding.what for finding in notify_findings(settings) if finding.level == "error"]
    assert any("is not found" in what for what in said)
    assert any("NOT_SET is not set" in what for what in said)


def test_event_is_sent_until_a_channel_takes_it(home):
    sent = []

    def send(succeeds: bool) -> bool:
        sent.append(succeeds)
        return succeeds

    for succeeds in (False, True, True):
        send_once("slurm://torchx/1", "end", lambda succeeds=succeeds: send(succeeds))
    assert sent == [False, True]
    send_once("slurm://torchx/1", "stall", lambda: send(True))
    assert sent == [False, True, True]


def test_two_processes_send_an_event_once(home):
    started, go, sent = threading.Event(), threading.Event(), []

    def send_slowly() -> bool:
        started.set()
        go.wait(PATIENCE)
        sent.append(1)
        return True

    first = threading.Thread(target=send_once, args=("slurm://torchx/1", "end", send_slowly))
    first.start()
    assert started.wait(PATIENCE)
    second = threading.Thread(target=send_once, args=("slurm://torchx/1", "end", lambda: sent.append(2) or True))
    second.start()
    go.set()
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert sent == [1]


def test_all_events_of_a_job_can_be_wanted(home):
    assert not is_wanted("slurm://torchx/1")
    want("slurm://torchx/1")
    assert is_wanted("slurm://torchx/1")


def test_the_terminals_own(home, monkeypatch):
    monkeypatch.delenv("TMUX", raising=False)
    assert terminal_sequence("a\x1b]0;evil\x07b") == "\x1b]9;ab\x07\x07"
    monkeypatch.setenv("TMUX", "x")
    assert terminal_sequence("a").startswith("\x1bPtmux;")


def launch(settings: Settings, program: str) -> str:
    role = Role("trainer", "/", entrypoint=sys.executable, args=["-uc", program], num_replicas=1)
    with make_runner(settings) as runner:
        handle = runner.run(AppDef("told", roles=[role]), "local_cwd", {})
        runner.detach(handle)
    return handle


def test_a_local_job_tells_with_no_dashboard(home, hook):
    settings = Settings(notify=NotifySettings(("failure", "first_step"), webhook=hook.url))
    go = home / "go"
    program = (
        "import os, time\nfor step in range(4): print(f'step {step}/9 loss: {2 / (step + 1)}'); time.sleep(2)\n"
        # Of a job that has ended no first step is told.
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
    )
    handle = launch(settings, f"{program}print('API_KEY=hunter2'); raise ValueError('the disk ate it')")
    wait_until(lambda: hook.posted, "the first message")
    go.touch()
    wait_until(lambda: len(hook.posted) == 2, "both messages")
    first, failed = sorted((body for _, _, body in hook.posted), key=lambda body: body["event"] != "first_step")
    assert (first["event"], first["handle"]) == ("first_step", handle)
    assert failed["state"] == "FAILED"
    assert "the disk ate it" in failed["sentence"]
    assert "hunter2" not in json.dumps(failed)
    assert any("API_KEY=" in line for line in failed["lines"])
    # Whoever else has seen the end tells nothing.
    seen = [Happened(handle, "failure"), Happened(handle, "first_step")]
    subprocess.run(helper_argv(), input=helper_request(settings, seen), text=True, check=True, timeout=PATIENCE)
    assert len(hook.posted) == 2


def watchers(state: str) -> list[int]:
    """List the helpers that run with a state folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "torchx_tui.notify" in (process.info["cmdline"] or ()):
            with suppress(psutil.Error):
                if process.environ().get("XDG_STATE_HOME") == state:
                    found.append(process.pid)
    return found


def test_one_process_watches_all_jobs(home, hook):
    """It outlives the job that started it, and ends with the last one."""
    settings = Settings(notify=NotifySettings(("first_step",), webhook=hook.url))
    go = [home / f"go-{number}" for number in range(3)]
    program = (
        "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.05)\n"
        "for step in range(4): print(f'step {{step}}/9 loss: {{2 / (step + 1)}}')\ntime.sleep(3600)"
    )
    state = str(home / "state")
    folder = home / "state" / "torchx-tui" / "notify" / f"watched-{os.uname().nodename}"
    handles = [launch(settings, program.format(str(go[0])))]
    wait_until(lambda: len(list(folder.glob("*"))) == 1, "the watcher", 3 * PATIENCE)
    handles += [launch(settings, program.format(str(path))) for path in go[1:]]
    alone = lambda: len(list(folder.glob("*"))) == 3 and len(watchers(state)) == 1  # noqa: E731
    wait_until(alone, "one watcher of three jobs", 3 * PATIENCE)
    (watcher,) = watchers(state)
    with make_runner(settings) as runner:
        runner.job(handles[0]).cancel()
        go[1].touch()
        wait_until(lambda: hook.posted, "the first step", 3 * PATIENCE)
        assert hook.posted[0][2]["handle"] == handles[1]
        assert watcher in watchers(state)
        runner.job(handles[1]).cancel()
        runner.job(handles[2]).cancel()
    wait_until(lambda: not watchers(state), "the end of the watcher", 3 * PATIENCE)
    assert list(folder.iterdir()) == []


def test_a_stall_and_the_end_are_told_on_every_way(home, hook, monkeypatch):
    keep = "import os, sys\nopen(os.path.join({!r}, {!r} + str(os.getpid())), 'w').write(sys.stdin.read())"
    command = script(home / "command", keep.format(str(home), "command-"))
    script(home / "sendmail", keep.format(str(home), "mail-"))
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    settings = Settings(notify=NotifySettings(("stall", "end"), (command,), hook.url, mail="me@example.org"))
    steps = "import time\nfor step in range(12): print(f'step {step}/90 loss: {2 / (step + 1)}'); time.sleep(0.5)\n"
    handle = launch(settings, f"{steps}time.sleep(3600)")
    # The stacks that the Job screen shows of it.
    keep_snapshot(hung_snapshot("checkpoint", handle=handle, at=time.time() + PATIENCE))

    def told(way: str) -> list[str]:
        # A file that was just made is still empty.
        return sorted(filter(None, (path.read_text() for path in home.glob(f"{way}-*"))))

    stalled = lambda: hook.posted and len(told("command")) == len(told("mail")) == 1  # noqa: E731
    wait_until(stalled, "the stall", SHORTEST_PAUSE_S + 3 * PATIENCE)
    stall = hook.posted[0][2]
    assert (stall["event"], stall["handle"], stall["state"]) == ("stall", handle, "RUNNING")
    # A pause takes longer where the machine is busy.
    assert re.match(r"no step for \d+[ms].*, usually \d+(\.\d)?s", stall["sentence"].lower())
    assert "rank 0 saves a checkpoint" in stall["sentence"]
    assert any("step 11/90" in line for line in stall["lines"])
    assert stall["sentence"] in told("command")[0]
    mail = message_from_string(told("mail")[0]).get_payload(decode=True)
    assert isinstance(mail, bytes)
    assert stall["sentence"] in mail.decode()
    with make_runner(settings) as runner:
        runner.job(handle).cancel()
    wait_until(lambda: len(hook.posted) == len(told("command")) == len(told("mail")) == 2, "the end")
    assert (hook.posted[1][2]["event"], hook.posted[1][2]["state"]) == ("end", "CANCELLED")


def test_a_job_ends_while_its_webhook_hangs(home, hook):
    hook.answers = [0]
    settings = Settings(notify=NotifySettings(("end",), webhook=hook.url))
    handle = launch(settings, "print(1)")
    with make_runner(settings) as runner:
        status = runner.job(handle).wait(0.1, timeout=PATIENCE)
    assert status is not None
    wait_until(lambda: hook.posted, "the message")
    assert hook.posted[0][2]["sentence"] == "Every replica ended with exit code 0."
