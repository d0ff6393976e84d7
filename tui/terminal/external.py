"""Leaving the terminal to another program, and coming back at its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

from ...logs.text.sanitize import plain
from .signals import Ended

# How long a program has between SIGTERM and SIGKILL when the app ends (s).
_GRACE_SECONDS = 1.0


def wait_for(program: subprocess.Popen[bytes]) -> int:
    """Wait for the program that has the terminal, and return its exit code; end it when a signal ends the app."""
    try:
        return program.wait()
    except Ended:
        program.terminate()
        try:
            return program.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            return -signal.SIGKILL


def run_outside(app: App[Any], command: Sequence[str], what: str, words: str = "") -> tuple[int, str]:
    """Leave the terminal to a program until it ends.

    Args:
        app: the app that leaves it.
        command: the argument list.
        what: the program, in words.
        words: printed before the program starts.

    Returns:
        its exit code, and why it could not be started, empty where it was.
    """
    code, failure = 127, ""
    try:
        with app.suspend():
            if words:
                assert sys.__stdout__ is not None
                sys.__stdout__.write(f"\r\n{plain(words)}\r\n")
                sys.__stdout__.flush()
            try:
                code = wait_for(subprocess.Popen(command))
            except OSError as error:
                failure = f"{command[0]} cannot be started: {error.strerror}"
            except ValueError as error:
                failure = f"{command[0]} cannot be started: {error}"
    except SuspendNotSupported:
        failure = f"this terminal cannot be suspended for {what}"
    return code, failure
