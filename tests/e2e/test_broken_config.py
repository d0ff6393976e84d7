"""A mistake in config.toml stops neither the dashboard nor the shell; a file that was named by hand must be sound."""

import pytest
from support.shell import shell

BROKEN = 'theme = "torchx-light"\n[local]\nmax_runing = 1\n'
WORDS = "local.max_runing is not a setting; did you mean max_running?"


@pytest.fixture
def broken(own_home):
    path = own_home / "config" / "torchx-tui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(BROKEN)
    return path


def test_the_dashboard_opens_and_says_it_until_the_next_key(terminal, broken, own_home):
    app = terminal(size=(200, 40))
    app.wait(WORDS)
    app.press("tab")
    app.wait(lambda text: WORDS not in text and "Jobs" in text)
    app.press("q")
    assert app.wait_for_end() == 0
    assert WORDS in (own_home / "state" / "torchx-tui" / "torchx-tui.log").read_text()


def test_the_shell_says_it_and_goes_on(broken):
    listed = shell("list", "-s", "local_cwd")
    assert (listed.returncode, listed.stdout.split()[:2]) == (0, ["APP", "HANDLE"])
    assert listed.stderr == f"torchx-tui: {broken}: {WORDS}; the rest of the file is used\n"


def test_a_file_of_the_command_line_must_be_sound(broken, tmp_path):
    for path, words in ((broken, WORDS), (tmp_path / "gone.toml", "gone.toml does not exist")):
        listed = shell("--config", str(path), "list")
        assert (listed.returncode, listed.stdout) == (2, "")
        assert words in listed.stderr


def test_a_missing_file_of_the_environment_is_told_of():
    listed = shell("list", "-s", "local_cwd", environ={"TORCHX_TUI_CONFIG": "/gone.toml"})
    assert listed.returncode == 0
    assert listed.stderr.startswith("torchx-tui: /gone.toml does not exist")
