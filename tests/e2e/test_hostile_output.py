"""Text that is not ours: whatever a job prints or is called, the terminal sees text, and the dashboard stays alive."""

import re

import pytest
from actions import fill, launch, open_form, wait_top
from support.component_files import ComponentFile
from support.terminal import Terminal

# What would act on a terminal.
ATTACKS = {
    "title": "\x1b]0;pwned-title\x07",
    "title, ended as strings are": "\x1b]2;pwned-title\x1b\\",
    "clipboard": "\x1b]52;c;cHduZWQ=\x07",
    "clear": "\x1b[2J\x1b[3J\x1b[H",
    "other screen": "\x1b[?1049l",
    "mouse": "\x1b[?1000h",
    "reset": "\x1bc",
    "answer": "\x1b[6n\x1b[c",
    "device string": "\x1bPpwned-string\x1b\\",
    "8 bit": "\x9b2J\x9d0;pwned-title\x9c",
    "backspaces": "\x08\x08\x08\x7f",
    "bell": "\x07",
    "other character set": "\x0e\x1b(0",
    "right to left": "\u202epwned\u202c\u2066x\u2069",
}
# None of these is written to the terminal by what the attacks' text becomes.
FORBIDDEN = [
    rb"\x1b\][02];pwned",
    rb"\x1b\]52;c;cHduZWQ",
    rb"\x1b\[3J",
    rb"\x1b\[\?1049l",
    rb"\x1bc",
    rb"\x1b\[6n",
    rb"\x1bPpwned",
    rb"\xc2[\x80-\x9f]",
    rb"(?<![\xc0-\xff\x80-\xbf])[\x80-\x9f]",
    rb"[\x08\x0e\x0f\x7f]",
    rb"\x1b\(0",
    rb"\xe2\x80[\xaa-\xae]",
    rb"\xe2\x81[\xa6-\xa9]",
]
ALL = "<" + "|".join(ATTACKS.values()) + "[/red][bold]>"

FILE = f'''
ALL = {ALL!r}
PRINT = """
import sys
out = sys.stdout.buffer
for line in (sys.argv[1] + "safe").split("|"):
    out.write(line.encode() + b" latin-1 " + line.encode("latin-1", "ignore"))
    out.write(b" invalid \\\\xff\\\\xfe\\\\xc3(\\\\n")
out.flush()
"""
FAIL = "import sys; print('before'); raise RuntimeError(sys.argv[1])"


def prints() -> AppDef:
    """Print what would act on a terminal."""
    return AppDef("prints", [Role("r", "", entrypoint="python3", args=["-c", PRINT, ALL])])


def fails() -> AppDef:
    """Fail with an error that would act on a terminal."""
    return AppDef("fails", [Role("r", "", entrypoint="python3", args=["-c", FAIL, ALL])])


def named() -> AppDef:
    """Have a role, an image and a variable that would act on a terminal."""
    return AppDef("named" + ALL.replace("/", ""), [
        Role("r" + ALL.replace("/", ""), ALL, entrypoint="sh", args=["-c", "echo out", ALL], env={{"A" + ALL: ALL}}),
    ])
'''


@pytest.fixture
def component_file(tmp_path):
    return ComponentFile(tmp_path / "jobs.py").write(FILE)


def assert_harmless(terminal: Terminal) -> None:
    """Look for attacks in the very bytes that the terminal was sent."""
    raw = bytes(terminal.raw)
    for pattern in FORBIDDEN:
        found = re.search(pattern, raw)
        assert found is None, (
            f"{pattern!r} reached the terminal: {raw[max(0, found.start() - 80) : found.end() + 40]!r}"
        )
    assert "pwned" not in terminal.title


def leave(terminal: Terminal, back_to: str) -> None:
    """Go back one level; a key that follows an escape at once would be read together with it."""
    before = terminal.text()
    terminal.press("escape", wait=lambda text: text != before and back_to in text)


def quit_normally(terminal: Terminal) -> None:
    """Leave the dashboard, whose jobs have all ended."""
    terminal.press("q")
    assert terminal.wait_for_end() == 0


# Output


def test_output_errors_and_names_drive_no_terminal(terminal, component_file):
    app = terminal(wait="No jobs yet")
    launch(app, "jobs.py:prints", {})
    wait_top(app, "Succeeded")
    app.wait("safe")
    assert "[/red][bold]" in app.text()
    # The card of the job shows its command.
    app.wait("command")
    app.press("l", wait=lambda text: "›  Logs" in text and "safe" in text)
    for key in ("w", "t", "o", "o", "o", "g", "G"):
        app.press(key)
    app.wait("safe")
    assert_harmless(app)
    leave(app, "STATE")
    app.press("enter", wait="Why")
    app.press("]", wait="entrypoint")
    app.press("]", wait="jobs_file|args|command|state")
    assert_harmless(app)
    leave(app, "Why")
    leave(app, "STATE")
    # A traceback.
    launch(app, "jobs.py:fails", {})
    wait_top(app, "Failed")
    app.press("enter", wait=r"(?s)Why.*Traceback \(most recent call last\)")
    app.wait(r"RuntimeError: <")
    assert "[/red][bold]" in app.text()
    for key in ("y", "]", "]"):
        before = app.text()
        app.press(key, wait=lambda text, before=before: text != before)
    assert_harmless(app)
    leave(app, "Why")
    leave(app, "STATE")
    # Names.
    open_form(app, "jobs.py:named")
    app.wait("ready|not be made|could not")
    app.press("ctrl+s")
    # A backend may refuse such names in words, or take them.
    text = app.wait(lambda text: "Not launched" in text or re.search(r"Succeeded +named", text))
    if "Not launched" not in text:
        app.press("enter", wait="Why")
        app.press("]", wait="entrypoint")
        app.press("]")
        leave(app, "Why")
    else:
        leave(app, "Component")
    leave(app, "STATE")
    assert_harmless(app)
    quit_normally(app)
    # The dashboard itself leaves the other screen.
    app.raw[:] = app.raw.replace(b"\x1b[?1049l", b"", 1)
    assert_harmless(app)


# Names


@pytest.mark.slow
def test_docstrings_and_file_names_drive_no_terminal(terminal, tmp_path):
    ComponentFile(tmp_path / "jobs.py").write(
        f'''
def job(first: str = {ALL!r}, *rest: str) -> AppDef:
    """Do this {ALL[:-1].encode("unicode_escape").decode()} and that.

    Args:
        first: {ALL.encode("unicode_escape").decode()}
    """
    return AppDef("job", [Role("r", "", entrypoint="true", args=[first])])
'''
    )
    evil = tmp_path / "evil\x1b]0;pwned-title\x07\x1b[3J.py"
    ComponentFile(evil).write("def other() -> AppDef:\n    return AppDef('x', [])\ndef broken(x) -> AppDef: ...\n")
    ComponentFile(tmp_path / "\x1b[3Jsyntax.py").write("def (")
    app = terminal(size=(150, 40), wait="No jobs yet")
    app.press("n", wait="evil")
    for _ in range(20):
        app.press("down")
    app.wait("cannot be used")
    app.press("escape", wait="No jobs yet")
    open_form(app, "jobs.py:job")
    app.wait("ready")
    fill(app, {"first": "changed"})
    app.wait("--first")
    app.press("ctrl+y")
    assert_harmless(app)


# The shell
