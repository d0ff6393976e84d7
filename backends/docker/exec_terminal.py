"""Runs a program in a container on this terminal, where Docker's own client is not installed.

    python -m torchx_tui.backends.docker.exec_terminal CONTAINER PROGRAM [ARGUMENT...]

Which engine that is, is looked up as Docker's client does; the exit code is the program's.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...specs import TorchXTuiError
from ..docker_engine.client import Engine
from ..shared.terminal_relay import READ, raw_terminal, read_keys, told_of_resizes, write_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program in a container until it ends; return its exit code."""
    container, *command = sys.argv[1:] if arguments is None else arguments
    engine = Engine()
    try:
        with engine.in_words():
            return _run(engine, container, command)
    except TorchXTuiError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        engine.close()


def _run(engine: Engine, container: str, command: Sequence[str]) -> int:
    # One client asks for the sizes, while another's connection is the terminal's.
    api = engine.client().api
    relaying = engine.new_client(None)
    environment = {"TERM": os.environ.get("TERM", "xterm")}
    asked = api.exec_create(container, list(command), stdin=True, tty=True, environment=environment)["Id"]
    answer: Any = relaying.api.exec_start(asked, tty=True, socket=True)
    connection = getattr(answer, "_sock", answer)
    with suppress(OSError, AttributeError):
        connection.settimeout(None)
    with raw_terminal(sys.stdin.fileno()), told_of_resizes() as resized:
        _relay(connection, resized, lambda: _resize(api, asked))
    relaying.close()
    return api.exec_inspect(asked)["ExitCode"] or 0


def _relay(connection: Any, resized: int, resize: Any) -> None:
    """Carry keys to the program and its output back until one side ends."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    resize()
    sources = [connection, keys, resized]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if resized in ready:
            os.read(resized, READ)
            resize()
        if connection in ready:
            data = connection.recv(READ)
            if not data:
                return
            write_all(screen, data)
        if keys in ready:
            data = read_keys(keys)
            if data:
                connection.sendall(data)
            else:
                sources.remove(keys)
                with suppress(OSError):
                    connection.shutdown(1)


def _resize(api: Any, asked: str) -> None:
    size = shutil.get_terminal_size()
    with suppress(Exception):  # a program that has just ended has no size
        api.exec_resize(asked, height=size.lines, width=size.columns)


if __name__ == "__main__":
    sys.exit(main())
