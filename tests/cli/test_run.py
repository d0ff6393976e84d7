"""run and dryrun: real local jobs, by the installed command where its process matters."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from keyword import iskeyword
from pathlib import Path

from support.component_files import ComponentFile
from support.shell import launches, shell
from support.terminal import COMMAND, Terminal
from support.waiting import wait_until

from torchx_tui.cli.commands import flag_names

RUN = ("run", "-s", "local_cwd")


def test_stdout_is_the_handle_and_stderr_the_log():
    ended = shell(*RUN, "utils.echo", "--msg", "hello there")
    assert (ended.returncode, ended.stderr) == (0, "echo/0 hello there\n")
    assert re.fullmatch(r"local_cwd://torchx/echo-\w+\n", ended.stdout)


def test_parameter_may_be_a_prefix_of_any_flag(command, tmp_path):
    flags = [flag.removeprefix("--") for flag in flag_names("run")]
    prefixes = {flag[:length] for flag in flags for length in range(1, len(flag))} - set(flags)
    names = sorted(name for name in prefixes if name.isidentifier() and not iskeyword(name))
    ComponentFile(tmp_path / "jobs.py").write(
        f'def job({": str, ".join(names)}: str) -> AppDef:\n    """Do it."""\n'
        f'    return AppDef("job", [Role("r", "", entrypoint="true", args=[{", ".join(names)}])])\n'
    )
    words = [f"--{name}=of {name}" for name in names]
    ended = command("run", "-s", "local_cwd", "jobs.py:job", *words, "--dryrun", "--json")
    assert ended.code == 0, ended.err
    assert ended.data["app"]["roles"][0]["args"] == [f"of {name}" for name in names]


def test_detached_job_runs_until_it_is_cancelled():
    ended = shell(*RUN, "utils.sh", "--detach", "--", "sleep", "3600")
    handle = ended.stdout.strip()
    assert (ended.returncode, ended.stderr) == (0, "")
    late = shell("wait", handle, "--timeout", "0.1")
    assert (late.returncode, "has not ended within 0.1 s" in late.stderr) == (124, True)
    assert shell("cancel", handle).returncode == 0
    waited = shell("wait", "--json", handle)
    assert (waited.returncode, json.loads(waited.stdout)["state"]) == (1, "CANCELLED")
    again = shell("cancel", handle)
    assert (again.returncode, again.stderr) == (0, f"torchx-tui: {handle} has ended already: CANCELLED\n")


def test_open_without_a_terminal_launches_nothing():
    ended = shell(*RUN, "--open", "utils.echo")
    assert (ended.returncode, "needs a terminal" in ended.stderr) == (2, True)
    assert launches() == []


def test_prefixes_are_green_on_a_terminal():
    argv = [COMMAND, *RUN, "utils.echo", "--msg", "hi"]
    with Terminal(argv) as app:
        app.wait_for_end()
        assert b"\x1b[32mecho/0\x1b[0m hi" in bytes(app.raw)
    with Terminal(argv, environ={"NO_COLOR": "1"}) as app:
        app.wait_for_end()
        assert b"\x1b" not in bytes(app.raw)
        assert b"echo/0 hi" in bytes(app.raw)


def test_output_cannot_control_the_terminal():
    argv = [COMMAND, *RUN, "utils.sh", "--", "printf", r"a\033]0;pwned\007b\n"]
    with Terminal(argv) as app:
        app.wait_for_end()
        assert b"\x1b]0;" not in bytes(app.raw)
        assert app.title == ""
        assert b"sh/0" in bytes(app.raw)
    # Into a pipe goes what was written.
    assert "\x1b]0;pwned\x07" in shell(*argv[1:]).stderr


def test_refused_launch_leaves_no_supervisor(own_home):
    ended = shell(*RUN, "utils.echo", "--num_replicas", "0")
    assert ended.returncode == 2
    mine = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}".encode()

    def left() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if b"supervisor.py" in path.read_bytes() and mine in (path.parent / "environ").read_bytes():
                    found.append(path.parent.name)
        return found

    wait_until(lambda: not left(), "the end of the supervisor")
