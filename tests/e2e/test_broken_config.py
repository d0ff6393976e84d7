"""A mistake in config.toml stops neither the dashboard nor the shell; a file that was named by hand must be sound."""

import pytest

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
    app.press("tab", wait=lambda text: WORDS not in text and "Jobs" in text)
    app.press("q")
    assert app.wait_for_end() == 0
    assert WORDS in (own_home / "state" / "torchx-tui" / "torchx-tui.log").read_text()
