"""What the command line takes, and what it makes of the environment."""

from __future__ import annotations

import argparse
import fcntl
import io
import logging
import os
import re
import resource
import struct
import subprocess
import sys
import termios
from typing import get_args

import pytest
from support.command import Command
from support.waiting import PATIENCE

from torchx_tui import __version__
from torchx_tui.backends.runner import Runner
from torchx_tui.cli import COMMANDS, add_arguments
from torchx_tui.cli import main as cli
from torchx_tui.cli.torchx_command import TuiCommand
from torchx_tui.guest.settings import guest_settings
from torchx_tui.settings.config import Settings, ThemeName
from torchx_tui.specs import ConfigError
from torchx_tui.specs.files import state_folder


def given(*arguments: str) -> Settings:
    return cli.read_settings(cli.build_parser().parse_args(arguments, cli.Arguments()))[0]


def test_options_override_the_settings():
    settings = given("--fps", "45", "--no-mouse", "--read-only", "--ascii", "--theme", "torchx-light")
    assert settings.frames_per_second == 45
    assert (settings.mouse, settings.read_only, settings.ascii, settings.theme) == (False, True, True, "torchx-light")


def test_every_theme_of_the_settings_can_be_named():
    assert {given("--theme", name).theme for name in get_args(ThemeName)} == set(get_args(ThemeName))


def test_a_profile_is_chosen_by_name(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[launch]\nprofile = 'a'\n[profiles.a]\n[profiles.b]\n")
    assert given("--config", str(path)).launch.profile == "a"
    assert given("--config", str(path), "--profile", "b").launch.profile == "b"
    assert given("--config", str(path), "--profile", "").launch.profile == ""
    with pytest.raises(ConfigError, match="c is not a profile; there are a, b"):
        given("--config", str(path), "--profile", "c")


def test_how_components_are_run_is_taken_from_the_settings(tmp_path, monkeypatch):
    for name in ("python", "memory_gigabytes"):
        monkeypatch.setattr(guest_settings, name, getattr(guest_settings, name))
    path = tmp_path / "config.toml"
    path.write_text("[components]\npython = '/opt/env/bin/python'\nmemory_gigabytes = 2.5\n")
    given("--config", str(path))
    assert (guest_settings.python, guest_settings.memory_gigabytes) == ("/opt/env/bin/python", 2.5)


@pytest.mark.parametrize("text", ["29", "241", "fast", "-60"])
def test_frames_out_of_range_are_refused_with_the_range(text, capsys):
    with pytest.raises(SystemExit):
        given(f"--fps={text}")
    assert "from 30 to 240" in capsys.readouterr().err


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
def test_how_often_the_screen_is_drawn_where_nobody_chose(environ, frames):
    assert cli.usual_frames(environ) == frames


def buffered() -> dict[str, str]:
    """Return the environment of a program whose output is kept back until it is flushed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def test_the_end_has_its_exit_code_whatever_threads_do():
    """A thread in the midst of a search makes the interpreter abort where that ends by itself."""
    program = (
        "import threading, time, re2\n"
        "from torchx_tui.cli.main import leave\n"
        "pattern, started = re2.compile('(a|b)*c'), threading.Event()\n"
        "def search():\n"
        "    while True:\n"
        "        started.set()\n"
        "        pattern.search('ab' * 200_000)\n"
        "for _ in range(4):\n"
        "    threading.Thread(target=search, daemon=True).start()\n"
        "started.wait(300)\n"
        "print('said before')\n"
        "leave(3)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=buffered(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "said before\n", "")


def test_a_log_file_that_cannot_be_written_puts_nothing_on_the_terminal(own_home):
    config = own_home / "config" / "torchx-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("nope = 1\n")
    ended = subprocess.run(
        [sys.executable, "-m", "torchx_tui.cli", "list", "-s", "local_cwd"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        # No file can grow, as on a full disk; what reads the output is a pipe.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (ended.returncode, ended.stdout.split()) == (0, ["APP", "HANDLE", "APP", "NAME", "APP", "STATUS"])
    (line,) = ended.stderr.splitlines()
    assert "nope is not a setting" in line


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch):
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
    monkeypatch.setattr(cli, "leave", lambda code: opened.update(code=code))
    for name in ("TEXTUAL_FPS", "TEXTUAL_ANIMATIONS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return opened


def take_terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Let the standard streams be a terminal, and return what is said on it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdin", Screen())
    monkeypatch.setattr(sys, "stderr", said := Screen())
    return said


@pytest.mark.parametrize(
    ("result", "return_code", "code"), [(3, 0, 3), (0, 5, 0), (None, 5, 5), (None, None, 1), (None, 0, 1)]
)
def test_the_program_ends_as_the_dashboard_did(command: Command, dashboard, monkeypatch, result, return_code, code):
    take_terminal(monkeypatch)
    dashboard.update(result=result, return_code=return_code)
    command()
    assert (dashboard["code"], dashboard["closed"], dashboard["opens"]) == (code, True, "")


def test_the_dashboard_opens_on_what_is_launched(command: Command, dashboard, monkeypatch):
    take_terminal(monkeypatch)
    handle = command("run", "-s", "local_cwd", "--open", "utils.echo").out.strip()
    assert handle.startswith("local_cwd://torchx/echo-")
    assert (dashboard["opens"], dashboard["problem"], dashboard["config_file"]) == (handle, "", None)


def test_what_the_dashboard_is_opened_with(command: Command, dashboard, monkeypatch, tmp_path):
    take_terminal(monkeypatch)
    config = tmp_path / "own.toml"
    config.write_text("")
    command("--fps", "60", "--no-mouse", "--config", str(config))
    assert (dashboard["config_file"], dashboard["mouse"], dashboard["problem"]) == (str(config), False, "")
    assert (os.environ["TEXTUAL_FPS"], os.environ["TEXTUAL_ANIMATIONS"]) == ("60", "none")


def test_what_the_environment_says_of_animations_counts(command: Command, dashboard, monkeypatch):
    take_terminal(monkeypatch)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "full")
    command("--theme", "torchx-light")
    assert (dashboard["settings"].theme, dashboard["mouse"], dashboard["config_file"]) == ("torchx-light", True, None)
    assert os.environ["TEXTUAL_ANIMATIONS"] == "full"
    assert "TEXTUAL_FPS" not in os.environ


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_without_a_terminal_there_is_no_dashboard(command: Command, dashboard, monkeypatch, stream):
    said = take_terminal(monkeypatch)
    monkeypatch.setattr(sys, stream, other := io.StringIO())
    assert command().code == 2
    assert "code" not in dashboard
    told = (other if stream == "stderr" else said).getvalue()
    assert told.startswith("torchx-tui: the dashboard needs a terminal; `torchx-tui list`")


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_draw_has_no_dashboard(command: Command, dashboard, monkeypatch, name):
    said = take_terminal(monkeypatch)
    monkeypatch.setenv("TERM", name)
    assert command().code == 2
    assert f"a terminal with TERM={name} cannot draw" in said.getvalue()


@pytest.mark.parametrize(
    ("size", "taken"), [((0, 0), (80, 24)), ((0, 50), (80, 50)), ((100, 0), (100, 24)), ((100, 50), (100, 50))]
)
def test_a_terminal_without_a_size_gets_one(command: Command, dashboard, monkeypatch, size, taken):
    """Columns and rows; what it knows itself it keeps."""
    primary, secondary = os.openpty()
    columns, rows = size
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    take_terminal(monkeypatch)
    with open(secondary) as stream:
        for name in ("stdin", "stderr"):
            monkeypatch.setattr(sys, name, stream)
        command()
        assert dashboard["code"] == 0
        # Without a size in pixels.
        told = struct.unpack("HHHH", fcntl.ioctl(primary, termios.TIOCGWINSZ, bytes(8)))
        assert told == (taken[1], taken[0], 0, 0)
    os.close(primary)


def test_a_command_that_is_interrupted_says_nothing(command: Command, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("torchx_tui.components.list_components", interrupted)
    ended = command("builtins")
    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_the_dashboard_as_a_command_of_torchx(command: Command, dashboard, monkeypatch):
    """It has the same options; what TorchX logs to the terminal is kept off it."""
    parser = argparse.ArgumentParser()
    made = TuiCommand()
    made.add_arguments(parser)
    assert str(parser.description).startswith("Open the dashboard")
    take_terminal(monkeypatch)
    with monkeypatch.context() as of_torchx:
        of_torchx.setattr(logging.root, "handlers", [logging.StreamHandler()])
        with pytest.raises(SystemExit):
            made.run(parser.parse_args(["--read-only", "--no-mouse"]))
        assert logging.root.handlers == []
    assert (dashboard["settings"].read_only, dashboard["mouse"], dashboard["code"]) == (True, False, 0)


@pytest.mark.parametrize(
    "option",
    [("--config", "own.toml"), ("--profile", ""), ("--theme", "torchx-light"), ("--fps", "60"), ("--ascii",), ()],
)
def test_options_may_stand_before_a_command(command: Command, tmp_path, option):
    (tmp_path / "own.toml").touch()
    ended = command(*option, "list", "-s", "local_cwd", "--json")
    assert (ended.code, ended.out) == (0, "[]\n")


@pytest.mark.parametrize("words", [("nope",), ("--fps", "60", "nope"), ("--read",), ("--fps",)])
def test_what_is_no_command_and_no_option_is_refused(command: Command, words):
    ended = command(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("usage: torchx-tui ")


def test_the_version(command: Command):
    assert command("--version").out == f"torchx-tui {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_what_it_does(command: Command, name):
    words = COMMANDS[name][1]
    helped = " ".join(command(name, "--help").out.split())
    assert f" {words[0].upper()}{words[1:]}. " in helped
    assert words in " ".join(command("--help").out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_says_what_it_is_for(name):
    parser = argparse.ArgumentParser()
    add_arguments(name, parser)
    options = [action for action in parser._actions if action.option_strings]
    assert [action.option_strings for action in options if not action.help] == []


def test_the_process_ends_with_the_code_of_its_command(command: Command, monkeypatch):
    ended = []
    monkeypatch.setattr(cli, "leave", ended.append)
    monkeypatch.setattr(sys, "argv", ["torchx-tui", "lint", "none.py"])
    assert cli.main() == 2
    assert ended == [2]
    assert cli.main(["builtins"]) == 0
    assert ended == [2]


@pytest.mark.parametrize("end", ["main()", "sys.exit(main(sys.argv[1:]))"])
def test_a_reader_that_has_gone_is_no_fault(end):
    """Nor at the interpreter's own end, where a caller of the function comes to it."""
    reader, writer = os.pipe()
    os.close(reader)
    program = f"import sys; from torchx_tui.cli.main import main; {end}"
    ended = subprocess.run(
        [sys.executable, "-c", program, "builtins", "--json"],
        env=buffered(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_wrong_with_the_config_is_logged(command: Command, own_home, caplog):
    assert command("list", "-s", "local_cwd").code == 0
    assert "torchx_tui.cli.main" not in caplog.text
    config = own_home / "config" / "torchx-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("nope = 1\n")
    assert "nope is not a setting" in command("list", "-s", "local_cwd").err
    (record,) = [record for record in caplog.records if record.name == "torchx_tui.cli.main"]
    assert (record.levelname, "nope is not a setting" in record.message) == ("WARNING", True)


def test_details_are_logged_where_they_are_asked_for(command: Command, monkeypatch):
    told = []
    monkeypatch.setattr(cli, "log_to_file", told.append)
    command("builtins")
    command("--debug", "builtins")
    assert told == [False, True]


@pytest.fixture
def log(own_home, monkeypatch):
    """The log file's path; the loggers of this process are as before afterwards."""
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    level = logging.root.level
    yield state_folder() / "torchx-tui.log"
    for handler in log_handlers():
        logging.root.removeHandler(handler)
        handler.close()
    logging.root.setLevel(level)
    logging.captureWarnings(False)


def log_handlers() -> list[logging.Handler]:
    """Return the handlers that are not of the tests."""
    return [one for one in logging.root.handlers if type(one) in (logging.FileHandler, logging.NullHandler)]


def test_the_log_file(log):
    cli.log_to_file(False)
    cli.log_to_file(False)
    (handler,) = log_handlers()
    logging.getLogger("torchx_tui.x").info("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789")
    logging.getLogger("torchx_tui.x").debug("a detail")
    (line,) = log.read_text().splitlines()
    assert re.fullmatch(rf"[-0-9]+ [:,0-9]+ {os.getpid()} INFO torchx_tui\.x HF_TOKEN=\S+", line)
    assert "abcdefghij" not in line
    assert log.stat().st_mode & 0o777 == 0o600
    cli.log_to_file(True)
    assert handler not in log_handlers()
    logging.getLogger("torchx_tui.x").debug("a detail")
    assert log.read_text().count("a detail") == 1


@pytest.mark.parametrize(("size", "is_put_aside"), [(5_000_000, False), (5_000_001, True)])
def test_a_large_log_file_is_put_aside(log, size, is_put_aside):
    log.parent.mkdir(parents=True)
    log.touch()
    os.truncate(log, size)
    cli.log_to_file(False)
    assert log.with_name("torchx-tui.log.1").exists() == is_put_aside
    assert log.stat().st_size == (0 if is_put_aside else size)


def test_a_log_that_is_no_file_is_not_waited_for(log):
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    cli.log_to_file(False)
    logging.getLogger("torchx_tui.x").error("nobody reads this")
    assert len(log_handlers()) == 1
