"""What the command line takes, and what it makes of the environment."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import get_args

import pytest
from support.waiting import PATIENCE

from torchx_tui.cli import main as cli
from torchx_tui.settings.config import Settings, ThemeName
from torchx_tui.specs import ConfigError


def given(*arguments: str) -> Settings:
    return cli._settings(cli.build_parser().parse_args(arguments, cli.Arguments()))[0]


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
    assert cli._usual_frames(environ) == frames


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
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
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
