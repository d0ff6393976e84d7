# ruff: noqa: E501
"""Every family of escape sequences, whole, cut in two, unfinished, and random bytes: a job's output only ever is text.

What reaches the terminal is read in two ways: all that is sent must be what drawing a screen needs, and the terminal
emulator behind it must still show the dashboard.
"""

from __future__ import annotations

import re
import unicodedata

import pytest
from actions import open_with, wait_top
from support.component_files import ComponentFile
from support.terminal import Terminal

FAMILIES = {
    "icon and title": b"\x1b]0;pwned\x07\x1b]1;pwned\x07\x1b]2;pwned\x1b\\",
    "title stack": b"\x1b[22;0t\x1b[23;0t\x1b]l pwned\x1b\\",
    "clipboard": b"\x1b]52;c;cHduZWQ=\x07\x1b]52;p;cHduZWQ=\x1b\\\x1b]52;c;?\x07",
    "hyperlink": b"\x1b]8;;http://pwned.example/\x1b\\pwned-link\x1b]8;;\x1b\\\x1b]8;id=1;file:///pwned\x07x\x1b]8;;\x07",
    "colours of the terminal": b"\x1b]4;1;rgb:ff/ff/ff\x07\x1b]10;?\x07\x1b]11;#ffffff\x07\x1b]104\x07\x1b]P0ffffff",
    "notification": b"\x1b]9;pwned\x07\x1b]777;notify;pwned;pwned\x07\x1b]99;;pwned\x1b\\",
    "file and image": b"\x1b]1337;File=name=cHduZWQ=;inline=1:cHduZWQ=\x07\x1b_Gf=24,s=1,v=1;cHdu\x1b\\",
    "working folder, shell marks": b"\x1b]7;file://host/pwned\x07\x1b]133;A\x07\x1b]633;E;pwned\x07",
    "clear": b"\x1b[2J\x1b[3J\x1b[J\x1b[1J\x1b[2K\x1b[H",
    "cursor": b"\x1b[H\x1b[10;10f\x1b[5A\x1b[5B\x1b[5C\x1b[5D\x1b[3E\x1b[3F\x1b[7G\x1b[4d\x1b[2I\x1b[2Z\x1b7\x1b8\x1b[s\x1b[u",
    "cursor's look": b"\x1b[?25h\x1b[?12h\x1b[5 q\x1b[?25l",
    "insert and delete": b"\x1b[4L\x1b[4M\x1b[4@\x1b[4P\x1b[4X\x1b[999b\x1b[4'}\x1b[4h",
    "scroll": b"\x1b[2;5r\x1b[5S\x1b[5T\x1bD\x1bM\x1bE\x1b[?69h\x1b[2;40s",
    "other screen": b"\x1b[?1049h\x1b[?1049l\x1b[?47h\x1b[?47l\x1b[?1047l\x1b[?1048l",
    "mouse": b"\x1b[?9h\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1005h\x1b[?1006h\x1b[?1015h\x1b[?1016h",
    "paste, focus, size": b"\x1b[?2004h\x1b[?1004h\x1b[?2048h\x1b[8;2;2t\x1b[?3h\x1b[?40h",
    "frames": b"\x1b[?2026h",
    "keyboard": b"\x1b[>31u\x1b[=31;1u\x1b[>4;2m\x1b[?1h\x1b=\x1b>\x1b[?66h\x1b[2h\x1b[20h",
    "screen's look": b"\x1b[?5h\x1b#8\x1b#3\x1b#6\x1b[?7l\x1b[?6h",
    "queries": b"\x1b[c\x1b[>c\x1b[=c\x1b[0c\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[18t\x1b[21t\x1b[?2026$p\x1bZ\x05\x1b[?u\x1b[>q",
    "checksum, macro": b"\x1b[1;1;1;1;9;9*y\x1b[1*z\x1bP1;0;0!z70776e6564\x1b\\",
    "DCS": b"\x1bPpwned\x1b\\\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1bPq#0;2;0;0;0~-\x1b\\\x1bPtmux;\x1b\x1b]0;pwned\x07\x1b\\",
    "APC, PM, SOS": b"\x1b_pwned\x1b\\\x1b^pwned\x1b\\\x1bXpwned\x1b\\\x1bkpwned\x1b\\",
    "8 bit, raw": b"\x9b2J\x9d0;pwned\x9c\x90pwned\x9c\x9fpwned\x9c\x9epwned\x9c\x98pwned\x9c\x84\x85\x88\x8d\x8e\x8f\x9a",
    "8 bit, UTF-8": "\x9b2J\x9d0;pwned\x9c\x90pwned\x9c\x9fpwned\x9c\x9epwned\x9c\x98pwned\x9c\x84\x85\x8d\x9a".encode(),
    "character sets": b"\x0e\x0f\x1b(0\x1b)0\x1b*A\x1b+B\x1b-A\x1bn\x1bo\x1b|\x1b}\x1b~\x1bN\x1bO\x1b%@\x1b%G\x1b F\x1b G",
    "reset": b"\x1bc\x1b[!p\x1b[?5W\x1b[3g\x1bH\x1b[61\"p\x1b[1\"q",
    "controls": bytes(n for n in (*range(32), 127) if n not in (9, 10, 13, 27)),
    "cut, then another": b"\x1b[\x1b]0;pwned\x07\x1b[12\x18\x1b]0;pwned\x1a\x1b\x1b[2J\x1b[1;\x1b[2J",
    "long parameters": b"\x1b[" + b"1;" * 3000 + b"H\x1b[" + b"9" * 3000 + b"J",
    "controls within": b"\x1b[2\x08J\x1b[2\rJ\x1b[2\tJ\x1b]0;pw\x07ned\x07",
    "directions and hidden text": "\u202epwned\u202c\u2066x\u2069\u200b\u200f\u061c\ufeff\u2028\u2029\U000e0041".encode(),
}  # fmt: skip
# Never closed: on lines of their own, since all that follows on the line belongs to them.
UNFINISHED = (
    b"\x1b]0;pwned",
    b"\x1bPpwned",
    b"\x1b_pwned",
    b"\x1b[",
    b"\x1b",
    b"\x1b]52;c;cHdu",
    b"\xc2",
    b"\x1b[38;2;1",
    b"\x9d0;",
)

PROGRAM = """
import random, sys, time
out = sys.stdout.buffer
FAMILIES, UNFINISHED = {families!r}, {unfinished!r}
for attack in FAMILIES:
    for cut in sorted({{0, 1, 2, 3, len(attack) // 2, len(attack) - 1}}):
        out.write(b"<" + attack[:cut])
        out.flush()
        # The reader shall come in between now and then.
        time.sleep(0.004)
        out.write(attack[cut:] + b"> family\\n")
        out.flush()
for attack in UNFINISHED:
    out.write(b"before" + attack)
    out.flush()
    time.sleep(0.02)
    out.write(b"\\nafter\\n")
chance = random.Random(20)
for _ in range(20_000):
    out.write(chance.randbytes(chance.randrange(60)).replace(b"\\n", b"\\x1b") + b"\\n")
for attack in FAMILIES:
    out.write(b"<" + attack + b"> last\\n")
out.write(b"the end is safe\\n")
out.flush()
time.sleep(float(sys.argv[1]))
"""

# What drawing needs: colours, cursor to a cell, frames, the row after a whole one, and the pointer over it.
DRAWING = re.compile(
    rb"\x1b\[[0-9;]*m|\x1b\[\d+;\d+H|\x1b\[\?2026(?:[hl]|\$p)|\r\n|\x1b\]22;default\x07"
    rb"|\x1b\]2;torchx-tui[ a-z0-9]*\x07|\x1b\[22;2t"
)


@pytest.fixture
def component_file(tmp_path):
    program = PROGRAM.format(families=list(FAMILIES.values()), unfinished=UNFINISHED)
    return ComponentFile(tmp_path / "jobs.py").write(
        f'''
def prints(replicas: int = 1) -> AppDef:
    """Print what would act on a terminal."""
    return AppDef("prints", [Role("r", "", entrypoint="python3", args=["-c", {program!r}, "0"], num_replicas=replicas)])
'''
    )


class Watch:
    """Looks at what a terminal is sent from a place on."""

    def __init__(self, terminal: Terminal, start: int) -> None:
        self._terminal = terminal
        self._start = start

    def assert_only_drawing(self) -> None:
        """Look for anything but text and what drawing it needs."""
        raw = bytes(self._terminal.raw[self._start :])
        # The last sequence may not have come whole.
        text = DRAWING.sub(b"", raw[: raw.rfind(b"\x1b[?2026l")]).decode("utf-8")
        for found in re.finditer(r"[^ -~]", text):
            assert found[0].isprintable() or unicodedata.category(found[0]) == "Zs", (
                f"{found[0]!r} reached the terminal: {text[max(0, found.start() - 60) : found.end() + 60]!r}"
            )
        assert "pwned" not in self._terminal.title
        lines = self._terminal.lines()
        assert "torchx-tui" in lines[0], lines
        assert "Keys" in lines[-1], lines


def change(app: Terminal, *keys: str) -> None:
    """Press keys, each of which changes the screen."""
    for key in keys:
        before = app.text()
        app.press(key)
        app.wait(lambda text, before=before: text != before)


def look_around(app: Terminal, watch: Watch) -> None:
    """Search, filter and scroll to what the job printed, at both ends."""
    app.press("g")
    app.wait("family")
    watch.assert_only_drawing()
    change(app, "j", "t", "right", "left", "w")
    for pattern, found in (("pwned", r"\d (?:found|of \d)"), ("safe", "the end is safe")):
        app.press("/", pattern, "enter")
        app.wait(found)
        watch.assert_only_drawing()
        app.press("n", "N")
    app.press("escape")
    app.wait(lambda text: "esc clear" not in text)
    app.press("&", "family|last", "ctrl+r", "enter")
    app.wait("&family")
    app.press("g")
    watch.assert_only_drawing()
    app.press("escape", "G")
    app.wait("the end is safe")
    watch.assert_only_drawing()


@pytest.mark.slow
def test_no_sequence_of_a_job_is_obeyed(terminal, component_file):
    app = open_with(terminal, "jobs.py:prints", {"replicas": "2"}, size=(150, 45))
    watch = Watch(app, app.raw.find(b"\x1b[?2026l"))
    wait_top(app, "Succeeded")
    app.wait("the end is safe")
    watch.assert_only_drawing()
    app.press("l")
    # The note of the job's end goes away by itself: no key's effect may be taken for that, or that for a key's.
    app.wait(lambda text: "›  Logs" in text and "the end is safe" in text and "succeeded" not in text)
    look_around(app, watch)
    app.press("1")
    app.wait("replica 1|the end is safe")
    change(app, "g")
    watch.assert_only_drawing()
    app.press("escape")
    app.wait("STATE")
    watch.assert_only_drawing()
    before = len(app.raw)
    app.press("q")
    assert app.wait_for_end() == 0
    # The sequences of the dashboard's own leaving are all there: nothing of the job's is in its way.
    assert b"\x1b[?1049l" in bytes(app.raw[before:])
