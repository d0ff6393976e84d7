"""run and dryrun: real local jobs, by the installed command where its process matters."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from keyword import iskeyword
from pathlib import Path

import pytest
from support.command import Command
from support.component_files import ComponentFile
from support.shell import launches, shell
from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE, wait_until

from torchx_tui.cli import COMMANDS
from torchx_tui.cli.run_arguments import flag_names

WAITER = '''
def waiter(wait: str = "no", text: str = "") -> AppDef:
    """Say what it was given.

    Args:
        wait: a parameter with the name of one of run's flags
        text: another one
    """
    return AppDef("waiter", roles=[Role("r", image="", entrypoint="echo", args=[f"wait={wait}", text])])
'''
RUN_KEYS = {"handle", "app_id", "scheduler", "state", "ui_url"}


def record() -> dict:
    (path,) = launches()
    return json.loads(path.read_text())


def test_stdout_is_the_handle_and_stderr_the_logs():
    ended = shell("run", "-s", "local_cwd", "utils.echo", "--msg", "hello there")
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == [ended.stdout.strip()]
    assert ended.stdout.startswith("local_cwd://torchx/echo-")
    assert ended.stderr == "echo/0 hello there\n"


def test_a_job_that_fails_ends_with_1_and_its_status(command: Command):
    ended = command("run", "-s", "local_cwd", "utils.sh", "--", "sh", "-c", "echo oops >&2; exit 3")
    assert ended.code == 1
    assert "sh/0 oops\n" in ended.err
    assert "State: FAILED" in ended.err


def test_json_has_torchx_keys_and_nothing_else_on_stdout(command: Command):
    ended = command("run", "-s", "local_cwd", "--json", "utils.echo", "--msg", "hi")
    assert (ended.code, set(ended.data)) == (0, RUN_KEYS)
    assert (ended.data["scheduler"], ended.data["state"]) == ("local_cwd", "SUCCEEDED")
    assert ended.data["handle"] == f"local_cwd://torchx/{ended.data['app_id']}"
    assert ended.err == "echo/0 hi\n"


# Flags after the component


def test_flags_of_run_are_understood_after_the_component(command: Command, tmp_path: Path):
    argv = ["run", "utils.echo", "--msg", "hi", "--wait", "-s", "local_cwd", "--json", f"-cfg=log_dir={tmp_path}/logs"]
    ended = command(*argv)
    assert (ended.code, set(ended.data)) == (0, RUN_KEYS)
    (log,) = (tmp_path / "logs").rglob("stdout.log")
    assert log.read_text() == "hi\n"
    assert record()["arguments"] == {"msg": "hi"}


def test_a_parameter_of_the_component_wins_over_a_flag_of_the_same_name(command: Command, tmp_path: Path):
    ComponentFile(tmp_path / "jobs.py").write(WAITER)
    ended = command("run", "-s", "local_cwd", "jobs.py:waiter", "--wait", "soon", "--text=--detach", "--json")
    assert (ended.code, ended.err) == (0, "r/0 wait=soon --detach\n")
    assert ended.data["state"] == "SUCCEEDED"


def test_a_parameter_may_be_a_prefix_of_any_flag(command: Command, tmp_path: Path):
    flags = [flag.removeprefix("--") for flag in flag_names("run")]
    prefixes = {flag[:length] for flag in flags for length in range(1, len(flag))} - set(flags)
    names = sorted(name for name in prefixes if name.isidentifier() and not iskeyword(name))
    parameters = ", ".join(f'{name}: str = ""' for name in names)
    values = ", ".join(names)
    ComponentFile(tmp_path / "jobs.py").write(
        f'def job({parameters}) -> AppDef:\n    """Do it."""\n'
        f'    return AppDef("job", [Role("r", "", entrypoint="true", args=[{values}])])\n'
    )
    words = [word for name in names for word in (f"--{name}", f"of {name}")]
    for way in ("run", "dryrun"):
        rest = [*words, *(["--dryrun"] if way == "run" else []), "--json"]
        ended = command(way, "-s", "local_cwd", "jobs.py:job", *rest)
        assert ended.code == 0, ended.err
        assert ended.data["app"]["roles"][0]["args"] == [f"of {name}" for name in names]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_of_a_command_is_abbreviated(command: Command, name: str):
    ended = command(name, "--hel")
    assert (ended.code, ended.out) == (2, "")
    assert "unrecognized arguments: --hel" in ended.err or "are required" in ended.err or "say what to" in ended.err


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--", "echo", "--json"], "--json"),
        (["echo", "--wait", "--dryrun"], "--wait --dryrun"),
        (["--num_replicas", "1", "--wait", "echo", "-s", "x"], "-s x"),
    ],
)
def test_what_a_component_takes_as_words_stays_its_own(command: Command, words: list[str], printed: str):
    ended = command("run", "-s", "local_cwd", "utils.sh", *words)
    assert (ended.code, ended.err) == (0, f"sh/0 {printed}\n")


def test_help_after_the_component_is_the_component_s(command: Command):
    ended = command("run", "utils.echo", "--msg", "x", "--help")
    assert ended.code == 0
    assert "Print a message." in ended.out
    assert "--msg  (str, hello world)\n        message to print" in ended.out
    assert launches() == []


def test_h_belongs_to_the_component(command: Command):
    ended = command("dryrun", "-s", "local_cwd", "--json", "dist.torchrun", "--script", "x.py", "-h", "gpu.small")
    assert ended.data["app"]["roles"][0]["resource"]["gpu"] == 1


# What is launched


def test_a_role_is_changed_with_set(command: Command):
    ended = command(
        "run", "-s", "local_cwd", "utils.echo", "--set", "echo.num_replicas=2", "--set", "echo.args=a 'b c'"
    )
    assert (ended.code, sorted(ended.err.splitlines())) == (0, ["echo/0 a b c", "echo/1 a b c"])
    assert record()["overrides"] == {"echo": {"num_replicas": "2", "args": "a 'b c'"}}


def test_dryrun_launches_nothing_and_has_torchx_keys(command: Command):
    for argv in (["dryrun", "--json"], ["run", "--dryrun", "--json"]):
        ended = command(argv[0], "-s", "local_cwd", *argv[1:], "--parent_run_id", "parent-1", "utils.echo")
        assert (ended.code, set(ended.data)) == (0, {"scheduler", "cfg", "app", "request"})
        assert ended.data["app"]["roles"][0]["env"]["TORCHX_PARENT_RUN_ID"] == "parent-1"
        assert ended.data["cfg"] == {"log_dir": None, "prepend_cwd": False, "auto_set_cuda_visible_devices": False}
    assert "hello world" in command("dryrun", "-s", "local_cwd", "utils.echo").out
    assert launches() == []


def test_stdin_has_torchx_fields(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    given = {
        "component_name": "utils.echo",
        "component_args": {"msg": "from stdin", "num_replicas": 2},
        "scheduler": "local_cwd",
        "scheduler_args": {"log_dir": str(tmp_path / "logs")},
    }
    ended = subprocess.run(
        [COMMAND, "run", "--stdin", "--json"], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert sorted(ended.stderr.splitlines()) == ["echo/0 from stdin", "echo/1 from stdin"]
    assert json.loads(ended.stdout)["state"] == "SUCCEEDED"
    assert record()["cfg"] == {"log_dir": str(tmp_path / "logs")}
    words = {"component_name": "utils.sh", "component_args_str": ["--", "echo", "a b"], "scheduler": "local_cwd"}
    ended = subprocess.run(
        [COMMAND, "run", "--stdin", "--dryrun"], input=json.dumps(words), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0
    assert "echo 'a b'" in ended.stdout


# Defaults of config


def test_stdin_leaves_out_what_the_component_does_not_have(command: Command, monkeypatch: pytest.MonkeyPatch):
    data = {"component_name": "utils.echo", "scheduler": "local_cwd", "component_args": {"msg": "hi", "mgs": 1}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(data)))
    # The default scheduler beside the object says nothing.
    ended = command("dryrun", "-s", "local_docker", "--stdin", "--json")
    assert (ended.code, ended.data["app"]["roles"][0]["args"]) == (0, ["hi"])
    words = "component_args: mgs is not an argument of utils.echo, and left out; did you mean msg?"
    assert ended.err == f"torchx-tui: {words}\n"


def test_a_job_knows_that_the_command_run_launched_it(command: Command, monkeypatch: pytest.MonkeyPatch):
    argv = ("run", "-s", "local_cwd", "utils.sh", "--", "sh", "-c", "echo in $TORCHX_CONTEXT_NAME")
    monkeypatch.setenv("TORCHX_CONTEXT_NAME", "pipeline")
    assert command(*argv).err == "sh/0 in pipeline\n"
    monkeypatch.delenv("TORCHX_CONTEXT_NAME")
    assert command(*argv).err == "sh/0 in cli_run\n"
    monkeypatch.setenv("TORCHX_CONTEXT_NAME", "")


def test_config_gives_what_the_command_line_does_not(command: Command, tmp_path: Path, own_home: Path):
    (tmp_path / ".torchxconfig").write_text(
        "[cli:run]\ncomponent = utils.echo\nscheduler = local_cwd\nworkspace = .\n"
        f"[local_cwd]\nlog_dir = {tmp_path}/logs\nlogdir = x\n"
        "[component:utils.echo]\nmsg = from the file\nnum_replicas = 2\n"
    )
    ended = command("run", "--", "--num_replicas", "1")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        f"torchx-tui: {tmp_path}/.torchxconfig:7: [local_cwd] logdir is not a run option of local_cwd;"
        " did you mean log_dir?",
        "echo/0 from the file",
    ]
    kept = record()
    assert kept["arguments"] == {"msg": "from the file", "num_replicas": "1"}
    assert kept["config"] == {
        "scheduler": "local_cwd",
        "log_dir": f"{tmp_path}/logs",
        "component.msg": "from the file",
    }


def test_a_profile_wins_over_the_file_and_the_command_line_over_both(command: Command, tmp_path: Path):
    (tmp_path / ".torchxconfig").write_text("[local_cwd]\nlog_dir = /nowhere\n[component:utils.echo]\nmsg = file\n")
    config = tmp_path / "config.toml"
    config.write_text(
        f'[profiles.here]\nscheduler = "local_cwd"\nrunopts = {{ log_dir = "{tmp_path}/logs", prepend_cwd = true }}\n'
        'components."utils.echo" = { msg = "profile", num_replicas = 2 }\n'
    )
    ended = command("--config", str(config), "--profile", "here", "run", "-cfg", "prepend_cwd=no", "utils.echo")
    assert sorted(ended.err.splitlines()) == ["echo/0 profile", "echo/1 profile"]
    assert record()["cfg"] == {"log_dir": f"{tmp_path}/logs", "prepend_cwd": False}
    ended = command("--config", str(config), "--profile", "here", "run", "utils.echo", "--msg", "typed")
    assert sorted(ended.err.splitlines()) == ["echo/0 typed", "echo/1 typed"]


# Processes


def test_detach_leaves_it_running_until_it_is_cancelled():
    ended = shell("run", "-s", "local_cwd", "utils.sh", "--detach", "--", "sleep", "3600")
    handle = ended.stdout.strip()
    assert (ended.returncode, ended.stderr) == (0, "")
    late = shell("wait", handle, "--timeout", "0.1")
    assert (late.returncode, "has not ended within 0.1 s" in late.stderr) == (124, True)
    assert shell("cancel", handle).returncode == 0
    waited = shell("wait", "--json", handle)
    assert (waited.returncode, json.loads(waited.stdout)["state"]) == (1, "CANCELLED")
    again = shell("cancel", handle)
    assert (again.returncode, again.stderr) == (0, f"torchx-tui: {handle} has ended already: CANCELLED\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job(number: int):
    process = subprocess.Popen(
        [COMMAND, "run", "-s", "local_cwd", "utils.sh", "--", "sh", "-c", "echo begun; sleep 3600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    handle = process.stdout.readline().strip()
    assert process.stderr.readline() == "sh/0 begun\n"
    process.send_signal(number)
    assert process.wait(PATIENCE) == 128 + number
    assert f"cancelled {handle}" in process.stderr.read()
    wait_until(lambda: json.loads(shell("status", "--json", handle).stdout)["state"] == "CANCELLED", "the cancel")


def test_open_without_a_terminal_launches_nothing():
    ended = shell("run", "-s", "local_cwd", "--open", "utils.echo")
    assert (ended.returncode, "needs a terminal" in ended.stderr) == (2, True)
    assert launches() == []


def test_open_shows_the_job():
    argv = [
        COMMAND,
        "run",
        "-s",
        "local_cwd",
        "utils.sh",
        "--open",
        "--",
        "sh",
        "-c",
        "echo seen on the screen; sleep 3600",
    ]
    with Terminal(argv) as app:
        app.wait("seen on the screen")
        app.wait(r"Why|Replicas")
        app.press("escape")
        app.wait("STATE")
        app.press("q")
        # Its own job runs: what becomes of that is asked.
        app.wait("Keep running")
        app.press("y")
        assert app.wait_for_end() == 0


def test_prefixes_are_green_in_a_terminal_alone():
    argv = [COMMAND, "run", "-s", "local_cwd", "utils.echo", "--msg", "hi"]
    with Terminal(argv) as app:
        app.wait_for_end()
        assert b"\x1b[32mecho/0\x1b[0m hi" in bytes(app.raw)
    with Terminal(argv, environ={"NO_COLOR": "1"}) as app:
        app.wait_for_end()
        assert b"\x1b" not in bytes(app.raw)
        assert b"echo/0 hi" in bytes(app.raw)


def test_what_a_job_prints_cannot_drive_the_terminal():
    argv = [COMMAND, "run", "-s", "local_cwd", "utils.sh", "--", "printf", r"a\033]0;pwned\007b\n"]
    with Terminal(argv) as app:
        app.wait_for_end()
        assert b"\x1b]0;" not in bytes(app.raw)
        assert app.title == ""
        assert b"sh/0" in bytes(app.raw)
    # Into a pipe goes what was written.
    assert "\x1b]0;pwned\x07" in shell(*argv[1:]).stderr


def test_a_launch_that_is_refused_leaves_no_supervisor(own_home: Path):
    ended = shell("run", "-s", "local_cwd", "utils.echo", "--num_replicas", "0")
    assert ended.returncode == 2
    mine = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}".encode()

    def left() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if b"supervisor.py" in path.read_bytes() and mine in (path.parent / "environ").read_bytes():
                    found.append(path.parent.name)
            except OSError:
                continue
        return found

    wait_until(lambda: not left(), "the end of the supervisor")
