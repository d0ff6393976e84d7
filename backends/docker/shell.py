"""A shell in a running replica, on the terminal of who asks.

    python -m torchx_tui.backends.docker.shell CONTAINER PROGRAM [ARGUMENT...]

runs a program in a container on this terminal, where Docker's own client is not installed. Which engine that is, is
looked up as Docker's client does; the exit code is the program's.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...base.errors import TorchXTuiError
from ...specs.errors import SchedulerError
from ..docker_engine.client import Engine, exec_exit_code
from ..docker_engine.streams import start_exec
from ..shared.terminal_relay import (
    READ,
    raw_terminal,
    read_keys,
    resize_events,
    terminal_size,
    wait_readable,
    write_all,
)

if TYPE_CHECKING:
    from .containers import ContainerSummary

# What bash is looked for with. It answers by exit code: of what is printed at once the SDK may lose the beginning.
_NO_BASH, _NOT_FOUND = 3, 127
_LOOK = f"command -v bash >/dev/null || exit {_NO_BASH}"
_LOOK_S = 20.0
# Docker's own keys for leaving a terminal begin with ctrl-p, which shells want for themselves.
_DETACH_KEYS = "ctrl-^,ctrl-q"
# A program that was started may have no terminal yet: its size is set again until then.
_RESIZE_INTERVAL_S, _SIZE_TIMEOUT_S = 0.05, 30.0


def shell_command(engine: Engine, app_id: str, role: str, k: int) -> list[str]:
    """Return the argument list of a program that opens a shell in a replica on its own terminal.

    That is ``docker exec`` where Docker's client is installed and finds the engine, else a module of this package.

    Raises:
        JobNotFoundError, ValueError: there is no such app, role or replica.
        SchedulerError: the replica does not run, or its image has no shell.
        BackendUnavailableError: the engine cannot be reached.
    """
    # Not at the head: what runs on the terminal begins without it.
    from .containers import find_replica

    container = find_replica(engine, app_id, role, k)
    state = container.get("State", "unknown")
    if state != "running":
        raise SchedulerError(f"{role}/{k} of {app_id} is {state}: a shell needs a running replica")
    shell = _find_shell(engine, container, f"{role}/{k}")
    client = shutil.which("docker")
    # Docker's client does not look for Podman's socket.
    if client is None or not engine.is_found_by_docker:
        return [sys.executable, "-m", "torchx_tui.backends.docker.shell", container["Id"], shell]
    return [client, "exec", "--interactive", "--tty", "--detach-keys", _DETACH_KEYS, container["Id"], shell]


def _find_shell(engine: Engine, container: ContainerSummary, name: str) -> str:
    """Return the best shell that a container has."""
    import docker.errors

    from .beside import run_in_container

    with engine.translate_errors():
        try:
            code = run_in_container(engine, container["Id"], ["sh", "-c", _LOOK], _LOOK_S).code
        except docker.errors.APIError as error:
            if "executable file not found" not in str(error) and "no such file" not in str(error):
                raise
            code = _NOT_FOUND
    if code == 0:
        return "bash"
    # None of an engine that is too slow: sh is there nearly always, and says so itself otherwise.
    if code in (_NO_BASH, None):
        return "sh"
    raise SchedulerError(
        f"the image of {name}, {container.get('Image', '')}, has no shell (neither bash nor sh): nothing to open"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program in a container until it ends; return its exit code."""
    container, *command = sys.argv[1:] if arguments is None else arguments
    engine = Engine()
    try:
        with engine.translate_errors():
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
    connection, first = start_exec(relaying.api, asked, tty=True)
    with suppress(OSError, AttributeError):
        connection.settimeout(None)
    with raw_terminal(sys.stdin.fileno()), resize_events() as resized:
        write_all(sys.stdout.fileno(), first)
        relay(connection, resized, lambda: _resize(api, asked))
    relaying.close()
    return exec_exit_code(api, asked) or 0


def relay(connection: Any, resized: int, resize: Callable[[], bool]) -> None:
    """Carry keys to the program and its output back until one side ends."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    # A program that has not begun yet takes no size, and it is asked again soon; one that has ended neither.
    is_sized, until = resize(), time.monotonic() + _SIZE_TIMEOUT_S
    sources = [connection, keys, resized]
    while True:
        ready = wait_readable(sources, None if is_sized else _RESIZE_INTERVAL_S)
        if resized in ready:
            os.read(resized, READ)
            is_sized = resize()
        elif not is_sized:
            is_sized = resize() or time.monotonic() > until
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


def _resize(api: Any, asked: str) -> bool:
    size = terminal_size()
    try:
        api.exec_resize(asked, height=size.lines, width=size.columns)
    except Exception:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
