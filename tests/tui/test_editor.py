"""Which command opens a file at a line, for the editors that people have."""

import shlex
from pathlib import Path

import pytest

from torchx_tui.tui.terminal.editor import EditorError, editor_command

FILE = Path("/jobs/a file.py")


# Values of EDITOR, and the command that is run.
COMMANDS = """
vi: vi +12 FILE
/usr/bin/vim -p: /usr/bin/vim -p +12 FILE
nvim: nvim +12 FILE
nano -w: nano -w +12 FILE
emacs -nw: emacs -nw +12 FILE
emacsclient -t: emacsclient -t +12 FILE
micro: micro +12 FILE
hx: hx FILE:12
code --wait: code --wait -g FILE:12
'/opt/my editor/ed': '/opt/my editor/ed' FILE
"""


@pytest.mark.parametrize("row", COMMANDS.strip().splitlines())
def test_the_line_is_given_as_the_editor_takes_it(row):
    chosen, _, command = row.partition(": ")
    arguments = [word.replace("FILE", str(FILE)) for word in shlex.split(command)]
    assert editor_command(FILE, 12, {"EDITOR": chosen}) == arguments


def test_without_a_line_there_is_only_the_file():
    assert editor_command(FILE, 0, {"EDITOR": "vim"}) == ["vim", str(FILE)]


def test_visual_is_taken_first_and_an_empty_one_is_none():
    assert editor_command(FILE, 0, {"VISUAL": "hx", "EDITOR": "vi"})[0] == "hx"
    assert editor_command(FILE, 0, {"VISUAL": " ", "EDITOR": "vi"})[0] == "vi"


def test_a_file_is_never_taken_for_an_option(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert editor_command(Path("-c quit.py"), 0, {"EDITOR": "vi"}) == ["vi", str(tmp_path / "-c quit.py")]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "export EDITOR=vim"),
        ({"EDITOR": ""}, "export EDITOR=vim"),
        ({"EDITOR": "vi 'x"}, r"\$EDITOR is not a command"),
    ],
)
def test_what_cannot_be_used_says_what_to_set(environ, words):
    with pytest.raises(EditorError, match=words):
        editor_command(FILE, 1, environ)
