"""Options of the command line, the start of the dashboard, and the log file."""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import logging
import os
import re
import resource
import struct
import subprocess
import sys
import termios
from typing import Any, get_args

import pytest
from support.command import Ended, Screen
from support.component_files import HEADER, make_environment
from support.waiting import NEVER, PATIENCE

from torchx_tui import __version__
from torchx_tui.backends.runner import Runner
from torchx_tui.base.files import state_folder
from torchx_tui.cli import dashboard as opening
from torchx_tui.cli import main as cli
from torchx_tui.cli.commands import COMMANDS, build_parser
from torchx_tui.cli.main import log_to_file
from torchx_tui.cli.torchx_command import TuiCommand
from torchx_tui.guest.settings import GuestSettings, guest_settings
from torchx_tui.settings.config import Settings, ThemeName


def given(*arguments: str) -> Settings:
    return cli.read_settings(build_parser().parse_args(arguments))[0]


def test_options_override_the_settings():
    settings = given("--fps", "45", "--no-mouse", "--read-only", "--ascii", "--theme", "torchx-light")
    assert settings == dataclasses.replace(
        Settings(), frames_per_second=45, mouse=False, read_only=True, ascii=True, theme="torchx-light"
    )


def test_every_theme_can_be_named():
    assert {given("--theme", name).theme for name in get_args(ThemeName)} == set(get_args(ThemeName))


@pytest.mark.parametrize(("options", "profile"), [((), "a"), (("--profile", "b"), "b"), (("--profile", ""), "")])
def test_profile_of_the_command_line(tmp_path, options, profile):
    path = tmp_path / "config.toml"
    path.write_text("[launch]\nprofile = 'a'\n[profiles.a]\n[profiles.b]\n")
    assert given("--config", str(path), *options).launch.profile == profile


def test_config_chooses_python_and_memory_of_components(command, tmp_path):
    text = f'{HEADER}import resource, sys\ndef f() -> AppDef:\n    """Do."""\n'
    seen = "f'{sys.prefix} {resource.getrlimit(resource.RLIMIT_DATA)[0]}'"
    (tmp_path / "jobs.py").write_text(
        f"{text}    return AppDef('a', [Role('r', 'i', entrypoint='echo', args=[{seen}])])\n"
    )
    environment = make_environment(tmp_path / "environment")
    config = tmp_path / "config.toml"
    config.write_text(f"[components]\npython = '{environment}/bin/python'\nmemory_gigabytes = 2.5\n")
    ended = command("--config", str(config), "dryrun", "-s", "local_cwd", "jobs.py:f")
    assert f"{environment} {5 << 29}" in ended.out
    # The settings hold for that command only.
    assert guest_settings() == dataclasses.replace(GuestSettings(), timeout_s=NEVER, slow_s=NEVER)


@pytest.mark.parametrize(
    ("environ", "frames"),
    [
        ({}, 0),
        ({"SSH_CONNECTION": "10.0.0.1 22"}, 30),
        ({"TEXTUAL_FPS": "10"}, 30),
        ({"TEXTUAL_FPS": "90", "SSH_CONNECTION": "10.0.0.1 22"}, 90),
        ({"TEXTUAL_FPS": "often"}, 0),
    ],
)
def test_usual_frames(environ, frames):
    assert opening.usual_frames(environ) == frames


def run_program(*arguments: str, **options: Any):
    """Run Python with a buffered output; its stdout is captured unless an option gives another one."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([sys.executable, *arguments], env=environ, text=True, timeout=PATIENCE, check=False, **given)


def test_leave_ends_with_the_code_while_threads_search():
    """A thread in a search makes the interpreter abort if that ends by itself."""
    program = """
import threading, re2
from torchx_tui.cli.dashboard import leave
pattern, started = re2.compile('(a|b)*c'), threading.Event()
def search():
    while True:
        started.set()
        pattern.search('ab' * 200_000)
for _ in range(4):
    threading.Thread(target=search, daemon=True).start()
started.wait(300)
print('said before')
leave(3)
"""
    ended = run_program("-c", program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "said before\n", "")


@pytest.fixture
def faulty_config(user_config):
    """Have a config.toml with an unknown setting."""
    user_config.write_text("nope = 1\n")


def test_log_file_on_a_full_disk_is_silent(faulty_config):
    # No file can grow, as on a full disk; stdout is a pipe.
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))}
    ended = run_program("-m", "torchx_tui.cli", "list", "-s", "local_cwd", **full)
    assert (ended.returncode, ended.stdout.split()) == (0, ["APP", "HANDLE", "APP", "NAME", "APP", "STATUS"])
    (line,) = ended.stderr.splitlines()
    assert "nope is not a setting" in line


def take_terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Let stdin and stderr be a terminal, and return the latter."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdin", Screen())
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    return screen


@pytest.fixture
def dashboard(monkeypatch):
    """What the dashboard was opened with and the program ended with; it ends at once, with a result and a code."""
    opened = {"result": 0, "return_code": 0}

    class Dashboard:
        return_code = property(lambda self: opened["return_code"])

        def __init__(self, runner, settings, **options):
            opened.update(options, settings=settings)

        def run(self, **options):
            opened.update(options)
            return opened["result"]

    close = Runner.close
    monkeypatch.setattr(Runner, "close", lambda self: (opened.update(closed=True), close(self)))
    monkeypatch.setattr("torchx_tui.tui.app.TorchXTuiApp", Dashboard)
    monkeypatch.setattr(opening, "leave", lambda code: opened.update(code=code))
    for name in ("TEXTUAL_FPS", "TEXTUAL_ANIMATIONS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return opened


@pytest.fixture
def on_terminal(command, monkeypatch):
    """Return what runs a command on a terminal."""

    def run(*argv: str) -> Ended:
        take_terminal(monkeypatch)
        return command(*argv)

    return run


@pytest.mark.parametrize(
    ("result", "return_code", "code"), [(3, 0, 3), (0, 5, 0), (None, 5, 5), (None, None, 1), (None, 0, 1)]
)
def test_program_ends_as_the_dashboard(on_terminal, dashboard, result, return_code, code):
    dashboard.update(result=result, return_code=return_code)
    on_terminal()
    assert (dashboard["code"], dashboard["closed"], dashboard["opens"]) == (code, True, "")


def test_dashboard_opens_on_a_launched_job(on_terminal, dashboard):
    handle = on_terminal("run", "-s", "local_cwd", "--open", "utils.echo").out.strip()
    assert handle.startswith("local_cwd://torchx/echo-")
    assert (dashboard["opens"], dashboard["problem"], dashboard["config_file"]) == (handle, "", None)


def test_dashboard_gets_the_options(on_terminal, dashboard, tmp_path):
    config = tmp_path / "own.toml"
    config.touch()
    on_terminal("--fps", "60", "--no-mouse", "--config", str(config))
    assert (dashboard["config_file"], dashboard["mouse"], dashboard["problem"]) == (str(config), False, "")
    assert (os.environ["TEXTUAL_FPS"], os.environ["TEXTUAL_ANIMATIONS"]) == ("60", "none")


def test_dashboard_keeps_animations_of_the_environment(on_terminal, dashboard, monkeypatch):
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "full")
    on_terminal("--theme", "torchx-light")
    assert (dashboard["settings"].theme, dashboard["mouse"], dashboard["config_file"]) == ("torchx-light", True, None)
    assert (os.environ["TEXTUAL_ANIMATIONS"], "TEXTUAL_FPS" in os.environ) == ("full", False)


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_dashboard_needs_a_terminal(command, dashboard, monkeypatch, stream):
    screen = take_terminal(monkeypatch)
    monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: False)
    assert command().code == 2
    assert "code" not in dashboard
    assert screen.getvalue().startswith("torchx-tui: the dashboard needs a terminal; `torchx-tui list`")


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_dashboard_needs_a_terminal_that_draws(command, dashboard, monkeypatch, name):
    screen = take_terminal(monkeypatch)
    monkeypatch.setenv("TERM", name)
    assert command().code == 2
    assert f"a terminal with TERM={name} cannot draw" in screen.getvalue()


@pytest.mark.parametrize(
    ("size", "expected"), [((0, 0), (24, 80)), ((50, 0), (50, 80)), ((0, 100), (24, 100)), ((50, 100), (50, 100))]
)
def test_terminal_without_a_size_gets_one(command, dashboard, monkeypatch, size, expected):
    """Rows and columns."""
    primary, secondary = os.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    with open(secondary) as stream:
        take_terminal(monkeypatch)
        monkeypatch.setattr(sys, "stdin", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        command()
        assert dashboard["code"] == 0
        assert struct.unpack("HHHH", fcntl.ioctl(primary, termios.TIOCGWINSZ, bytes(8))) == (*expected, 0, 0)
    os.close(primary)


def test_interrupted_command_is_silent(command, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("torchx_tui.components.finder.list_components", interrupted)
    ended = command("builtins")
    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_dashboard_as_a_command_of_torchx(command, log, dashboard, monkeypatch):
    """It has the same options; what TorchX logs to the terminal is kept off it."""
    parser = argparse.ArgumentParser()
    made = TuiCommand()
    made.add_arguments(parser)
    assert str(parser.description).startswith("Open the dashboard")
    take_terminal(monkeypatch)
    monkeypatch.setattr(cli, "log_to_file", log_to_file)
    logging.root.addHandler(logging.StreamHandler())
    with pytest.raises(SystemExit):
        made.run(parser.parse_args(["--read-only", "--no-mouse"]))
    assert [type(handler) for handler in logging.root.handlers] == [logging.FileHandler]
    assert (dashboard["settings"].read_only, dashboard["mouse"], dashboard["code"]) == (True, False, 0)


def test_version(command):
    assert command("--version").out == f"torchx-tui {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(command, name):
    words = COMMANDS[name].help
    assert f" {words[0].upper()}{words[1:]}. " in " ".join(command(name, "--help").out.split())
    assert words in " ".join(command("--help").out.split())
    options = [option for one in COMMANDS[name].options for option in (one if isinstance(one, list) else [one])]
    assert [names for names, keywords in options if names[0].startswith("-") and not keywords.get("help")] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_not_abbreviated(command, name):
    ended = command(name, "--hel")
    assert (ended.code, ended.out) == (2, "")
    assert re.search("unrecognized arguments: --hel|are required|say what to", ended.err)


def test_process_ends_with_the_code_of_its_command(command, monkeypatch):
    ended = []
    monkeypatch.setattr(cli, "leave", ended.append)
    monkeypatch.setattr(sys, "argv", ["torchx-tui", "lint", "none.py"])
    assert cli.main() == 2
    assert ended == [2]
    assert cli.main(["builtins"]) == 0
    assert ended == [2]


@pytest.mark.parametrize("end", ["main()", "sys.exit(main(sys.argv[1:]))"])
def test_closed_pipe_is_no_error(end):
    """Nor at the interpreter's own end, where a caller of the function comes to it."""
    reader, writer = os.pipe()
    os.close(reader)
    program = f"import sys; from torchx_tui.cli.main import main; {end}"
    ended = run_program("-c", program, "builtins", "--json", stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_faults_of_the_config_are_logged(command, faulty_config, caplog):
    assert "nope is not a setting" in command("list", "-s", "local_cwd").err
    (record,) = [record for record in caplog.records if record.name == "torchx_tui.cli.main"]
    assert (record.levelname, "nope is not a setting" in record.message) == ("WARNING", True)


def test_debug_option(command, monkeypatch):
    given = []
    monkeypatch.setattr(cli, "log_to_file", given.append)
    command("builtins")
    command("--debug", "builtins")
    assert given == [False, True]


@pytest.fixture
def log(own_home, monkeypatch):
    """The log file's path; the loggers of this process are as before afterwards."""
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    monkeypatch.setattr(logging.root, "handlers", [])
    level = logging.root.level
    yield state_folder() / "torchx-tui.log"
    for handler in logging.root.handlers:
        handler.close()
    logging.root.setLevel(level)
    logging.captureWarnings(False)


def test_log_file(log):
    cli.log_to_file(False)
    cli.log_to_file(False)
    (handler,) = logging.root.handlers
    logging.getLogger("torchx_tui.x").info("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789")
    logging.getLogger("torchx_tui.x").debug("a detail")
    (line,) = log.read_text().splitlines()
    assert re.fullmatch(rf"[-0-9]+ [:,0-9]+ {os.getpid()} INFO torchx_tui\.x HF_TOKEN=\S+", line)
    assert "abcdefghij" not in line
    assert log.stat().st_mode & 0o777 == 0o600
    cli.log_to_file(True)
    assert handler not in logging.root.handlers
    logging.getLogger("torchx_tui.x").debug("a detail")
    assert log.read_text().count("a detail") == 1


@pytest.mark.parametrize(("size", "is_put_aside"), [(5_000_000, False), (5_000_001, True)])
def test_large_log_file_is_put_aside(log, size, is_put_aside):
    log.parent.mkdir(parents=True)
    log.touch()
    os.truncate(log, size)
    cli.log_to_file(False)
    assert log.with_name("torchx-tui.log.1").exists() == is_put_aside
    assert log.stat().st_size == (0 if is_put_aside else size)


def test_named_pipe_as_log_file(log):
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    cli.log_to_file(False)
    logging.getLogger("torchx_tui.x").error("nobody reads this")
    assert [type(handler) for handler in logging.root.handlers] == [logging.NullHandler]
