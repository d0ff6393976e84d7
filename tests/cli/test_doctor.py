"""doctor: what is wrong here, and what to do about each fault."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support.command import Command
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.doctor import checks as diagnosis
from torchx_tui.doctor import machine_checks
from torchx_tui.doctor.machine_checks import file_system, terminal_findings


def findings(command: Command, *argv: str) -> dict[str, list[tuple[str, str, str]]]:
    ended = command(*argv, "doctor", "--json")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for one in ended.data:
        assert set(one) == {"subject", "level", "what", "hint"}
        found.setdefault(one["subject"], []).append((one["level"], one["what"], one["hint"]))
    levels = [level for told in found.values() for level, _, _ in told]
    assert ended.code == (1 if "error" in levels else 0)
    return found


def test_every_subject_is_looked_at(command: Command):
    found = findings(command)
    assert list(found)[:13] == [
        *(
            "program",
            "config.toml",
            "profiles and .torchxconfig",
            "notify",
            "terminal",
            "folders",
            "logout",
            "components",
            "plugins",
        ),
        *("local_docker", "local_cwd", "kubernetes", "slurm"),
    ]
    assert found["local_docker"][0][0] == "error"
    assert found["local_docker"][0][2]
    assert found["local_cwd"][0][1].startswith("this machine: ")
    assert found["kubernetes"] == found["slurm"] == [("ok", "not set up here", "")]


def test_the_text_has_a_hint_under_its_fault(command: Command):
    ended = command("doctor")
    assert ended.code == 1
    lines = ended.out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  error "))
    assert lines[place - 1] == "local_docker"
    assert lines[place + 1].startswith("           ")


def test_config_faults_are_told_with_their_place(command: Command, tmp_path: Path, own_home: Path):
    config = own_home / "config" / "torchx-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        'thmee = "x"\n[profiles.p]\nscheduler = "kubernets"\n'
        '[profiles.q]\nscheduler = "local_cwd"\nrunopts = { logdir = "/x" }\ncomponents."utils.ecko" = { msg = "x" }\n'
    )
    (tmp_path / ".torchxconfig").write_text(
        "[local_cwdd]\nx = 1\n[local_cwd]\nprepend_cwd = maybe\n[component:utils.echo]\nmgs = 1\n"
    )
    found = findings(command)
    assert found["config.toml"][0][:2] == (
        "error",
        f"{config}: thmee is not a setting; did you mean theme?; the rest of the file is used",
    )
    told = [what for _, what, _ in found["profiles and .torchxconfig"]]
    file = f"{tmp_path}/.torchxconfig"
    assert f"{file}: [local_cwdd] is not a scheduler; did you mean local_cwd?" in told
    assert any(what.startswith(f"{file}:4: [local_cwd] prepend_cwd: `maybe` is not true or false") for what in told)
    assert f"{file}:6: [component:utils.echo] mgs is not an argument of utils.echo; did you mean msg?" in told
    assert "profile p: kubernets is not a scheduler; did you mean kubernetes?" in told
    assert "profiles.q.runopts.logdir is not a run option of local_cwd; did you mean log_dir?" in told
    assert any("utils.ecko" in what and "utils.echo" in what for what in told)
    # The same fault is told once, not for each profile.
    assert len(told) == len(set(told))


def test_a_backend_that_hangs_is_left_behind(command: Command, monkeypatch: pytest.MonkeyPatch):
    ended = threading.Event()
    monkeypatch.setattr(LocalScheduler, "check", lambda self: ended.wait(PATIENCE))
    monkeypatch.setattr(diagnosis, "PATIENCE_SECONDS", 0.2)
    try:
        assert findings(command)["local_cwd"][0][:2] == ("error", "no answer within 0.2 s")
    finally:
        ended.set()


def test_a_backend_that_raises_is_told_of(command: Command, monkeypatch: pytest.MonkeyPatch):
    def check(self: LocalScheduler) -> None:
        raise ZeroDivisionError("at the end of the world")

    monkeypatch.setattr(LocalScheduler, "check", check)
    assert findings(command)["local_cwd"][0][:2] == ("error", "ZeroDivisionError: at the end of the world")


def test_what_cannot_be_found_out_keeps_nothing_else_from_being_told(command: Command, monkeypatch: pytest.MonkeyPatch):
    def usage(_path: object) -> None:
        raise ZeroDivisionError("no folders")

    monkeypatch.setattr(machine_checks.shutil, "disk_usage", usage)
    found = findings(command)
    assert found["folders"][0][:2] == ("error", "this check failed: ZeroDivisionError: no folders")
    assert found["logout"]
    assert found["local_cwd"]


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
def test_what_a_terminal_can(environ, level, words):
    assert any(one.level == level and words in one.what for one in terminal_findings(environ))


def test_a_small_terminal_is_told_of():
    with Terminal([COMMAND, "doctor"], size=(70, 60)) as app:
        app.wait("70x60, less than 80x24")
        app.wait("make the window larger")
        assert app.wait_for_end() == 1


def test_the_file_system_of_a_path(tmp_path: Path):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda1 / ext4 rw 0 0\nfiler:/x {tmp_path} nfs4 rw 0 0\ntmpfs {tmp_path}/a\\040b tmpfs rw 0 0\n"
    )
    (tmp_path / "a b").mkdir()
    assert file_system(tmp_path, mounts) == "nfs4"
    assert file_system(tmp_path / "a b", mounts) == ""
    assert file_system(Path("/"), mounts) == ""


@pytest.mark.parametrize(
    ("lines", "code", "told"),
    [
        ("", 1, "  warning  nothing is set up\n           set notify.command, webhook or mail in config.toml\n"),
        ('command = ["true"]', 0, "  ok       command true\n"),
        ('command = ["false"]', 1, "  error    command false: false ended with exit code 1\n"),
    ],
)
def test_a_test_message_says_which_way_failed(command: Command, tmp_path: Path, lines: str, code: int, told: str):
    (tmp_path / "own.toml").write_text(f"[notify]\n{lines}\n")
    ended = command("--config", "own.toml", "doctor", "--notify")
    assert (ended.code, ended.out) == (code, told)
