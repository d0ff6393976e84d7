"""Keys that come all at once, as from a paste or a slow link: each does what it would have done by itself."""

from __future__ import annotations

import re


def test_command_typed_in_one_burst(terminal):
    app = terminal(size=(120, 40), wait="No jobs yet")
    app.process.write(b":doctor\r")
    app.wait(lambda text: re.search(r"› +Doctor", text.splitlines()[0]))
    app.press("escape", wait="No jobs yet")
    # The same while the list of an earlier search stands there.
    app.press(":", wait="Search for commands")
    app.process.write(b"d")
    app.wait("Theme torchx-dark")
    app.process.write(b"octor\r")
    app.wait(lambda text: re.search(r"› +Doctor", text.splitlines()[0]))
    app.press("escape", wait="No jobs yet")
    # A screen that is opened has what is typed behind it; a field that is emptied, what comes after that.
    app.process.write(b"n" + b"zzz\x15demo.tr\r")
    app.wait("Run options")
    app.wait(r"^▌steps")
    app.process.write(b"\x05\x15" + b"77\t8\x1b")
    app.wait("Component")
    app.press("escape", wait="No jobs yet")
    # What matches nothing runs nothing.
    app.process.write(b":zzzz\r")
    app.wait("No matches found")
    app.press("escape", wait=lambda text: "zzzz" not in text and "No jobs yet" in text)
