"""doctor: what is wrong here, and what to do about each fault."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.command import Command
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.doctor import checks as diagnosis
from torchx_tui.doctor import machine_checks
from torchx_tui.doctor.machine_checks import file_system, terminal_findings

CONFIG = """
thmee = "x"
[profiles.p]
scheduler = "kubernets"
[profiles.q]
scheduler = "local_cwd"
runopts = { logdir = "/x" }
components."utils.ecko" = { msg = "x" }
"""
TORCHXCONFIG = """[local_cwdd]
x = 1
[local_cwd]
prepend_cwd = maybe
[component:utils.echo]
mgs = 1
"""


def findings(command: Command, *argv: str) -> dict[str, list[tuple[str, str, str]]]:
    ended = command(*argv, "doctor", "--json")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for one in ended.data:
        found.setdefault(one["subject"], []).append((one["level"], one["what"], one["hint"]))
    assert ended.code == ('"level": "error"' in ended.out)
    return found


def test_every_subject_is_checked(command):
    found = findings(command)
    subjects = ["program", "config.toml", "profiles and .torchxconfig", "notify", "terminal", "folders", "logout"]
    backends = ["local_docker", "local_cwd", "kubernetes", "slurm"]
    assert list(found)[:13] == [*subjects, "components", "plugins", *backends]
    ((level, _, hint),) = found["local_docker"]
    assert (level, bool(hint)) == ("error", True)
    assert found["local_cwd"][0][1].startswith("this machine: ")
    assert found["kubernetes"] == found["slurm"] == [("ok", "not set up here", "")]


def test_faults_of_the_config(command, tmp_path, user_config):
    user_config.write_text(CONFIG)
    (tmp_path / ".torchxconfig").write_text(TORCHXCONFIG)
    found = findings(command)
    words = f"{user_config}: thmee is not a setting; did you mean theme?; the rest of the file is used"
    assert found["config.toml"][0][:2] == ("error", words)
    file = f"{tmp_path}/.torchxconfig"
    faults = [what for _, what, _ in found["profiles and .torchxconfig"]]
    # Each fault once, not for each profile.
    assert len(faults) == len(set(faults))
    assert {what.partition(";")[0].partition(". ")[0] for what in faults} >= {
        f"{file}: [local_cwdd] is not a scheduler",
        f"{file}:4: [local_cwd] prepend_cwd: `maybe` is not true or false",
        f"{file}:6: [component:utils.echo] mgs is not an argument of utils.echo",
        "profile p: kubernets is not a scheduler",
        "profiles.q.runopts.logdir is not a run option of local_cwd",
    }
    assert any("utils.ecko" in what and "utils.echo" in what for what in faults)


def test_hanging_backend_is_an_error(command, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(LocalScheduler, "check", lambda self: ended.wait(PATIENCE))
    monkeypatch.setattr(diagnosis, "PATIENCE_SECONDS", 0.2)
    try:
        assert findings(command)["local_cwd"][0][:2] == ("error", "no answer within 0.2 s")
    finally:
        ended.set()


@pytest.mark.parametrize(
    ("owner", "name", "subject", "words"),
    [
        (LocalScheduler, "check", "local_cwd", "ZeroDivisionError: no answer"),
        (machine_checks.shutil, "disk_usage", "folders", "this check failed: ZeroDivisionError: no answer"),
    ],
)
def test_failing_check_is_an_error(command, monkeypatch, owner, name, subject, words):
    def fails(_: object) -> None:
        raise ZeroDivisionError("no answer")

    monkeypatch.setattr(owner, name, fails)
    found = findings(command)
    assert found[subject][0][:2] == ("error", words)
    assert found["logout"]


@pytest.mark.parametrize(
    ("environ", "level", "words"),
    [
        ({"TERM": "dumb"}, "error", "TERM is dumb: the dashboard cannot draw"),
        ({}, "error", "TERM is not set"),
        ({"TERM": "xterm-256color"}, "ok", "256 colours"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "ok", "16 million colours"),
        ({"TERM": "linux"}, "ok", "the terminal's own 16 colours"),
        ({"TERM": "xterm", "NO_COLOR": ""}, "ok", "no colours"),
        ({"TERM": "screen"}, "ok", "GNU screen"),
    ],
)
def test_terminal_capabilities(environ, level, words):
    assert any(one.level == level and words in one.what for one in terminal_findings(environ))


def test_small_terminal_is_an_error():
    with Terminal([COMMAND, "doctor"], size=(70, 60)) as app:
        app.wait("70x60, less than 80x24")
        app.wait("make the window larger")
        assert app.wait_for_end() == 1


def test_file_system_of_a_path(tmp_path, monkeypatch):
    (tmp_path / "a b").mkdir()
    mounts = [("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "a b"), "tmpfs")]
    partitions = [SimpleNamespace(mountpoint=point, fstype=kind) for point, kind in mounts]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: partitions)
    assert [file_system(path) for path in (tmp_path, tmp_path / "a b", Path("/"))] == ["nfs4", "", ""]


@pytest.mark.parametrize(
    ("lines", "code", "told"),
    [
        ("", 1, "  warning  nothing is set up\n           set notify.command, webhook or mail in config.toml\n"),
        ('command = ["true"]', 0, "  ok       command true\n"),
        ('command = ["false"]', 1, "  error    command false: false ended with exit code 1\n"),
    ],
)
def test_notify_says_which_channel_failed(command, tmp_path, lines, code, told):
    (tmp_path / "own.toml").write_text(f"[notify]\n{lines}\n")
    ended = command("--config", "own.toml", "doctor", "--notify")
    assert (ended.code, ended.out) == (code, told)
