"""Copying through the terminal, within what it takes, and to a file where it takes none."""

import base64

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, until

from torchx_tui.tui.terminal.clipboard import MOST_ENCODED, copy_to_file, osc52

XTERM = {"TERM": "xterm-256color"}


def test_the_sequence_holds_the_text():
    sequence = osc52("zwei\nZeilen ü", XTERM)
    assert sequence is not None
    assert sequence.startswith("\x1b]52;c;")
    assert base64.b64decode(sequence[7:-1]).decode() == "zwei\nZeilen ü"


def test_multiplexers_hand_it_on():
    plain = osc52("x", XTERM)
    assert plain is not None
    in_tmux = osc52("x", {**XTERM, "TMUX": "/tmp/tmux-0/default,1,0"})
    # tmux takes one or the other, by its settings.
    assert in_tmux == plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"
    assert osc52("x", {"TERM": "screen-256color"}) == f"\x1bP{plain}\x1b\\"


@pytest.mark.parametrize("environ", [{}, {"TERM": "dumb"}])
def test_a_dumb_terminal_takes_nothing(environ):
    assert osc52("x", environ) is None


def test_it_is_capped_by_its_encoded_length():
    most = MOST_ENCODED // 4 * 3
    assert osc52("x" * most, XTERM) is not None
    assert osc52("x" * (most + 3), XTERM) is None
    assert osc52("ü" * most, XTERM) is None


def test_a_file_is_for_this_user_only_and_there_is_one(own_home):
    path = copy_to_file("one")
    assert copy_to_file("two") == path
    assert path == own_home / "state" / "torchx-tui" / "copied.txt"
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_long_text_is_written_to_a_file(tmp_path, own_home):
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(160, 40)) as pilot:
        app.terminal_clipboard.copy("x" * 100_000, "5 lines")
        await until(pilot, lambda: app.status.message)
        path = own_home / "state" / "torchx-tui" / "copied.txt"
        assert f"Wrote 5 lines to {path}" in app.status.message
        assert path.read_text() == "x" * 100_000
        # What is pasted is this copy, not the one before.
        assert app.clipboard == "x" * 100_000


async def test_where_nothing_can_be_written_it_is_said(tmp_path, own_home, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    (own_home / "state").mkdir(exist_ok=True)
    (own_home / "state" / "torchx-tui").write_text("no folder")
    async with app.run_test(size=(160, 40)) as pilot:
        app.terminal_clipboard.copy("x", "the handle")
        await until(pilot, lambda: app.status.message)
        assert "Could not copy the handle: the terminal does not accept this copy, and" in app.status.message
