"""What a person does in the dashboard, in keys."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from support.terminal import COMMAND, Terminal
from support.waiting import PATIENCE

# An app id of demo.train, as the screens print it in full.
APP_ID = re.compile(r"demo-train-[a-z0-9]{10,16}")


def focused_field(terminal: Terminal) -> str:
    """Return the label of the form's field that has the focus, empty if none has."""
    found = re.search(r"^▌(\S+)", terminal.text(), re.MULTILINE)
    return found[1] if found else ""


def fill(terminal: Terminal, values: dict[str, str]) -> None:
    """Replace the text of fields in the form that is open; fields are found by walking through it."""
    for name, value in values.items():
        go_to(terminal, name)
        label = rf"^▌{name}(?: \*)?\s+"
        empty = rf"{label}(?:none)?\s*(?:typed|default|script|last run|required)"
        if not re.search(empty, terminal.text(), re.MULTILINE):
            terminal.press("ctrl+e", "ctrl+u")
            # Textual carries out a key that is bound later than one that is a letter: type once the field is empty.
            terminal.wait(empty)
        terminal.press(value)
        # Of a long text a field shows the end.
        terminal.wait(label + (re.escape(value) if len(value) < 24 else rf".*{re.escape(value[-18:])}") + r"\s")


def go_to(terminal: Terminal, name: str) -> None:
    """Walk to a field with tab: at once where it stands below the focused one on the screen, else field by field."""
    at_once = True
    for _ in range(60):
        text = terminal.text()
        found = re.search(r"^▌(\S+)", text, re.MULTILINE)
        here = found[1] if found else ""
        if here == name:
            return
        below = re.findall(r"^ ([a-z]\S*)", text[found.end() :], re.MULTILINE) if found and at_once else []
        if name in below:
            # All at once: the form is drawn once.
            terminal.press("\t" * (below.index(name) + 1))
            with contextlib.suppress(AssertionError):
                terminal.wait(lambda _: focused_field(terminal) == name, PATIENCE / 2)
            # Where rows came meanwhile, another field has the focus.
            at_once = False
            continue
        terminal.press("tab")
        # A moment lies between the end of one field's mark and the begin of the next one's; a button has no mark.
        with contextlib.suppress(AssertionError):
            terminal.wait(lambda _, here=here: focused_field(terminal) not in ("", here), PATIENCE / 4)
    raise AssertionError(f"no field {name}:\n{terminal.text()}")


def open_form(terminal: Terminal, component: str) -> None:
    """Open the form of a component from the Jobs screen."""
    terminal.press("n", wait="Component")
    terminal.press(component, wait=rf"{re.escape(component)}\s+(builtin|mine|plugin|script)")
    terminal.press("enter")
    # In a long form run options are below the screen.
    terminal.wait(rf"Run options|Arguments\s+{re.escape(component)}")
    # The first field takes the focus once the form is there: a key before that would go elsewhere.
    terminal.wait(r"^▌\S")


def submit(terminal: Terminal) -> None:
    """Submit the form that is open, once nothing is wrong with it."""
    terminal.wait(r"\bready\b")
    terminal.press("ctrl+s", wait="STATE")


def launch(terminal: Terminal, component: str, values: dict[str, str]) -> None:
    """Launch a component from the Jobs screen."""
    open_form(terminal, component)
    fill(terminal, values)
    submit(terminal)


def open_with(start: Callable[..., Terminal], component: str, values: Mapping[str, str], **options: Any) -> Terminal:
    """Start the dashboard with a local job of its own, as `run --open` does: for what is not about the form.

    Args:
        start: starts a terminal.
        component: what is launched.
        values: of its parameters.
        options: of the terminal.
    """
    given = [word for name, value in values.items() for word in (f"--{name}", value)]
    terminal = start(arguments=[COMMAND, "run", "-s", "local_cwd", "--open", component, *given], **options)
    terminal.wait(r"Jobs +›")
    terminal.press("escape", wait="STATE")
    return terminal


def top_row(terminal: Terminal) -> str:
    """Return the first row of the table, empty where the screen shows no table."""
    lines = iter(terminal.lines())
    shown = any("STATE" in line and "NAME" in line for line in lines)
    return next(lines) if shown else ""


def wait_top(terminal: Terminal, state: str, patience: float = PATIENCE) -> str:
    """Wait until the first row of the table shows a state, or one of several (``a|b``); return the row."""
    seen = [""]

    def shown(_text: str) -> bool:
        seen.append(top_row(terminal))
        return bool(re.search(state, seen[-1]))

    terminal.wait(shown, patience)
    return seen[-1]


def cancel(terminal: Terminal) -> None:
    """Cancel the job at the cursor."""
    terminal.press("x", wait="Cancel this job")
    terminal.press("y")


def cancel_top(terminal: Terminal) -> None:
    """Cancel the first job of the table, which is at the cursor."""
    cancel(terminal)
    wait_top(terminal, "Cancelled")


def look_inside(terminal: Terminal, host: str) -> None:
    """Open a shell in the third replica of the job at the cursor, leave it, and show what its backend says of the job.

    Args:
        terminal: shows the Jobs screen.
        host: how the replica's own host name ends.
    """
    terminal.press("enter", wait="Replicas")
    terminal.press("tab", wait="━ Replicas")
    terminal.press("right", "right", "!", wait="trainer/2: type exit to return")
    terminal.press("echo inside-$(hostname)\r", wait=rf"^inside-demo-train-\w+{host}")
    before = len(terminal.raw)
    terminal.press("exit\r")
    # The emulator knows of no second screen: what it shows may be of before.
    terminal.wait(lambda _: b"\x1b[?1049h" in terminal.raw[before:])
    terminal.press("i")


def live_through(terminal: Terminal, backend: str) -> None:
    """Follow four replicas of demo.train that were just launched, cancel, launch again, edit and delete them.

    Args:
        terminal: shows the Jobs screen.
        backend: the backend's word in the table.
    """
    terminal.wait(rf"● Running +demo-train\b.* +{backend} +4/4")
    # All four replicas in one log.
    terminal.wait(lambda text: all(re.search(rf"^.*\b{k}[│┆].*step", text, re.MULTILINE) for k in range(4)))
    cancel_top(terminal)
    terminal.press("r", wait=r"Launched \S*demo-train-\w+ again")
    terminal.wait(
        lambda text: re.search(r"Running +demo-train", text) and re.search(r"Cancelled +demo-train", text),
    )
    terminal.press("g")
    cancel_top(terminal)
    # The same again with one value changed: the form has all the others.
    terminal.press("e", wait=r"^▌\S")
    terminal.wait(r"num_replicas\s+4\s+last run")
    fill(terminal, {"steps": "3"})
    submit(terminal)
    wait_top(terminal, "Succeeded")
    terminal.press("*", "D", wait="Delete 3 jobs")
    # It goes on only with the count.
    terminal.press("y", "3", "enter", wait="No jobs yet")
