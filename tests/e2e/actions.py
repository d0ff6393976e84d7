"""What a person does in the dashboard, in keys."""

from __future__ import annotations

import re

from support.terminal import Terminal

# An app id of demo.train, as the screens print it in full.
APP_ID = re.compile(r"demo-train-[a-z0-9]{10,16}")


def fill(terminal: Terminal, values: dict[str, str]) -> None:
    """Replace the text of fields in the form that is open; fields are found by walking down from the first."""
    for name, value in values.items():
        for _ in range(30):
            if re.search(rf"^▌{name}\b", terminal.text(), re.MULTILINE):
                break
            terminal.press("tab")
            terminal.wait(lambda text: "▌" in text)
        else:
            raise AssertionError(f"no field {name}:\n{terminal.text()}")
        terminal.press("ctrl+e", *["backspace"] * 12, value)
        terminal.wait(rf"▌{name}\b.*{re.escape(value)}")


def launch(terminal: Terminal, component: str, values: dict[str, str]) -> None:
    """Launch a component from the Jobs screen."""
    terminal.press("n")
    terminal.wait("Component")
    terminal.press(component)
    terminal.wait(rf"{re.escape(component)}\s+(builtin|mine)")
    terminal.press("enter")
    terminal.wait("Run options")
    fill(terminal, values)
    terminal.wait("ready")
    terminal.press("ctrl+s")
    terminal.wait(r"(?s)Launched|Jobs")


def top_row(terminal: Terminal) -> str:
    """Return the first row of the table."""
    lines = terminal.lines()
    header = next(number for number, line in enumerate(lines) if "STATE" in line and "NAME" in line)
    return lines[header + 1]


def wait_top(terminal: Terminal, state: str) -> str:
    """Wait until the first row of the table shows a state; return the row."""

    def shown(text: str) -> bool:
        return "STATE" in text and state in top_row(terminal)

    terminal.wait(shown)
    return top_row(terminal)
