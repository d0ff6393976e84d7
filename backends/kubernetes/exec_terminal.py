"""Runs a program in a container on this terminal.

    python -m torchx_tui.backends.kubernetes.exec_terminal CONTEXT NAMESPACE POD CONTAINER PROGRAM [ARGUMENT...]

CONTEXT is one of the kubeconfig's, empty for the current one; the exit code is the program's.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress

from ...specs import TorchXTuiError
from ..shared.terminal_relay import READ, raw_terminal, read_keys, told_of_resizes, write_all
from .api_server import ApiServer
from .exec import KEYS, PodExec, run_in_pod

# What a terminal sends for ctrl-d: protocols before v5 cannot end what a program reads.
_END_OF_KEYS = b"\x04"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program in a container until it ends; return its exit code."""
    context, namespace, pod, container, *command = sys.argv[1:] if arguments is None else arguments
    server = ApiServer(context or None)
    try:
        with run_in_pod(server, namespace, pod, container, command, tty=True) as running:
            with raw_terminal(sys.stdin.fileno()), told_of_resizes() as resized:
                _relay(running, resized)
            return running.exit_code()
    except TorchXTuiError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        server.close()


def _relay(running: PodExec, resized: int) -> None:
    """Carry keys to the program and its output back until one side ends."""
    from websocket import WebSocketException

    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    _resize(running)
    sources = [running.fileno(), keys, resized]
    # A connection that broke off is told of by the result, which is missing.
    with suppress(OSError, WebSocketException):
        while True:
            ready = [sources[0]] if running.has_more else select.select(sources, [], [])[0]
            if resized in ready:
                os.read(resized, READ)
                _resize(running)
            if sources[0] in ready:
                came = running.read()
                if came is None:
                    return
                write_all(screen, came[1])
            if keys in ready:
                data = read_keys(keys)
                running.write(KEYS, data or _END_OF_KEYS)
                if not data:
                    sources.remove(keys)


def _resize(running: PodExec) -> None:
    size = shutil.get_terminal_size()
    running.resize(size.columns, size.lines)


if __name__ == "__main__":
    sys.exit(main())
