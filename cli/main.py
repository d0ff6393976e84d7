"""The command `torchx-tui`: parse the command line, run a command or open the dashboard, report errors."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..base.files import is_file
from ..base.threads import report_thread_failures
from .dashboard import leave, open_dashboard
from .output import say

if TYPE_CHECKING:
    from ..settings.config import Settings

# Bytes; a larger log file is renamed at the next start.
LARGEST_LOG = 5_000_000
# Errors of writes to stdout; such an OSError has no file name.
_OUTPUT_ERRORS = (errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_OVERRIDES = ("theme", "ascii", "read_only", "frames_per_second", "mouse")

_log = logging.getLogger(__name__)


class NoArguments:
    """The arguments of an empty command line."""

    command = config = profile = None
    debug = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 if a job failed, 2 if the command could not be carried out.

    Args:
        argv: its arguments; those of this process if None, which then ends with the exit code.
    """
    if argv is not None:
        return _main(argv)
    _open_standard_files()
    try:
        code = _main(sys.argv[1:])
    except SystemExit as ended:  # argparse has printed a help or the version
        code = ended.code if isinstance(ended.code, int) else 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        code = _output_failed(error)
    leave(code)
    return code


def _main(words: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from .completion import complete

        complete()

    def parse() -> Any:
        # The dashboard alone needs no parser: argparse would delay its first paint by 8 ms.
        if not words:
            return NoArguments()
        from .commands import build_parser

        return build_parser(words).parse_args(words)

    return run_arguments(parse)


def _open_standard_files() -> None:
    """Open descriptors 0 to 2 if the shell closed them, as by ``>&-``, so that no other file gets them.

    Writing to such a stdout fails and is reported. Messages to such a stderr are discarded. What stdout cannot encode,
    such as a file's name that is no text, is escaped.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _output_failed(error: OSError) -> int:
    say(f"the output cannot be written: {error.strerror}")
    _discard_output()
    return 2


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that the interpreter does not flush its buffer again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_arguments(parse: Callable[[], Any]) -> int:
    """Run what the command line asks for, report errors on stderr, and return the exit code.

    Args:
        parse: returns the parsed command line: the attributes of `NoArguments`, and those of the command.
    """
    from ..base.errors import TorchXTuiError, describe_error
    from ..specs.errors import UnknownAppException

    try:
        return _run(parse())
    except TorchXTuiError as error:
        _log.debug("the command failed", exc_info=True)
        text = str(error)
        say(text if any(map(str.isalnum, text)) else f"the command failed and gave no reason ({type(error).__name__})")
        return 1 if isinstance(error, UnknownAppException) else 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of the pipe has ended.
        _discard_output()
        return 0
    except Exception as error:  # of a scheduler of another package, or of a file system
        _log.exception("the command failed")
        if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
            return _output_failed(error)
        say(describe_error(error))
        return 2


def _run(arguments: Any) -> int:
    from ..base.files import refuse_foreign_folders
    from ..guest.settings import use_guest_settings

    refuse_foreign_folders()
    settings, problem = read_settings(arguments)
    components = settings.components
    with use_guest_settings(python=components.python, memory_gigabytes=components.memory_gigabytes):
        log_to_file(arguments.debug)
        if problem:
            _log.warning("%s", problem)
        # `torchx tui` has no commands.
        if not getattr(arguments, "command", None):
            # The dashboard shows failures of threads itself; after it closes they are only logged.
            report_thread_failures(lambda _: None)
            return open_dashboard(settings, problem, config_file=arguments.config)
        report_thread_failures(say)
        if problem:
            say(problem)
        from .commands import run_command

        return run_command(arguments, settings)


def read_settings(arguments: Any) -> tuple[Settings, str]:
    """Read the settings, apply the options of the command line, and return them with the faults of the file.

    Raises:
        ConfigError: the file of ``--config`` cannot be read or has a fault, or there is no such profile.
    """
    import dataclasses
    from pathlib import Path

    from ..backends.shared.secrets import choose_patterns
    from ..settings.config import check_profile, load_settings, load_settings_lenient

    if arguments.config is not None:
        settings, problem = load_settings(Path(arguments.config)), ""
    else:
        settings, problem = load_settings_lenient()
    choose_patterns(settings.secret_names)
    given = {name: getattr(arguments, name, None) for name in _OVERRIDES}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if arguments.profile is not None:
        check_profile(arguments.profile, settings)
        changes["launch"] = dataclasses.replace(settings.launch, profile=arguments.profile)
    return dataclasses.replace(settings, **changes), problem


def log_to_file(debug: bool) -> None:
    """Send loggers and warnings to the log file only, since nothing may print to the dashboard's terminal."""
    from ..base.files import NoHomeError, private_folder, state_folder

    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError, NoHomeError):
        path = private_folder(state_folder()) / "torchx-tui.log"
        if is_file(path) and path.stat().st_size > LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        path.touch(mode=0o600)
        # Opening a named pipe would block.
        if is_file(path):
            handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(MaskingFormatter("%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    # Without this a full disk would print tracebacks on the terminal.
    logging.raiseExceptions = False


class MaskingFormatter(logging.Formatter):
    """Formatter that masks secrets: messages and tracebacks quote what users gave."""

    def format(self, record: logging.LogRecord) -> str:
        from ..backends.shared.secrets import mask_text

        return mask_text("", super().format(record))
