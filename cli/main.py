"""The command ``torchx-tui``: the dashboard, and the same from the shell."""

from __future__ import annotations

import argparse
import contextlib
import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import __version__
from ..base.files import is_file
from ..base.threads import report_thread_failures

if TYPE_CHECKING:
    import argparse

    from ..backends.runner import Runner
    from ..settings.config import Settings

_WIDEST = 120


def help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter as wide as the terminal; argparse's own asks for its width, by a slow import, per argument."""
    return argparse.HelpFormatter(prog, width=terminal_width() - 2)


def terminal_width() -> int:
    """Return the columns of the terminal, at most 120; 80 where there is none."""
    columns = os.environ.get("COLUMNS")
    if columns and columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return min(_WIDEST, os.get_terminal_size(sys.stdout.fileno()).columns or 80)
    except (OSError, ValueError):
        return 80


_LOG_HANDLER = "torchx-tui.log"
# Bytes; a larger log file is put aside when the program starts.
LARGEST_LOG = 5_000_000


class Arguments:
    """What the command line says where it says nothing; argparse fills one of these."""

    command: str | None = None
    config: str | None = None
    profile: str | None = None
    debug = False
    read_only = False
    theme: str | None = None
    ascii: bool | None = None
    fps: int | None = None
    no_mouse = False


# Values of TERM for what has no cursor to move, such as a shell within Emacs.
_CANNOT_DRAW = ("dumb", "unknown")

# Errors of writes to stdout; such an OSError has no file name.
_OUTPUT_ERRORS = (errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# How long backends may take to close at the end (s).
_LAST_SECONDS = 1.0

# The options before a command that have a value.
_WITH_VALUE = ("--config", "--profile", "--theme", "--fps")


def build_parser(commands: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the command's parser.

    Args:
        commands: the subcommands whose arguments are needed, so that no other is loaded; all of them if None.
    """
    import argparse

    from . import COMMANDS, add_arguments

    parser = argparse.ArgumentParser(
        prog="torchx-tui",
        description="A full-screen dashboard for training jobs. Without a command, it opens the dashboard.",
        allow_abbrev=False,
        formatter_class=help_formatter,
    )
    parser.add_argument("--version", action="version", version=f"torchx-tui {__version__}")
    add_dashboard_options(parser)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog)
    for name, (_, words) in COMMANDS.items():
        description = f"{words[0].upper()}{words[1:]}."
        one = parsers.add_parser(
            name, help=words, description=description, formatter_class=help_formatter, allow_abbrev=False
        )
        if commands is None or name in commands:
            add_arguments(name, one)
    return parser


def add_dashboard_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of the dashboard."""
    from ..settings.choices import THEMES

    parser.add_argument("--config", metavar="FILE", help="read settings from this file instead of config.toml")
    parser.add_argument("--profile", metavar="NAME", help="launch with the defaults of this profile of config.toml")
    parser.add_argument("--debug", action="store_true", help="write tracebacks and details to the log file")
    parser.add_argument("--read-only", action="store_true", help="refuse actions that change a job")
    parser.add_argument("--theme", choices=THEMES, help="colours of the dashboard")
    parser.add_argument("--ascii", action="store_true", default=None, help="draw with ASCII characters only")
    parser.add_argument("--fps", type=_frames, metavar="N", help="draw at most N times a second, from 30 to 240")
    parser.add_argument("--no-mouse", action="store_true", help="do not use the mouse")


def _command_of(argv: Sequence[str]) -> list[str]:
    """Return the word of a command line that should be its subcommand, if there is one."""
    words = iter(argv)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return [word]
    return []


def _frames(text: str) -> int:
    """Return a number of frames a second; argparse says what is wrong with another text."""
    import argparse

    from ..settings.choices import FRAMES_PER_SECOND, FRAMES_WORDS

    if not text.isdecimal() or int(text) not in FRAMES_PER_SECOND:
        raise argparse.ArgumentTypeError(f"{text}: {FRAMES_WORDS}")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 when a job failed, 2 when the command could not be carried out.

    Args:
        argv: its arguments; those of this process if None, which then ends with the exit code.
    """
    if argv is not None:
        return _main(list(argv))
    _open_standard_files()
    try:
        code = _main(sys.argv[1:])
    except SystemExit as ended:  # argparse has printed a help, a version or an error
        code = ended.code if isinstance(ended.code, int) else 1
    code = _flushed(code)
    leave(code)
    return code


def _open_standard_files() -> None:
    """Open descriptors 0 to 2 if the shell closed them, as by ``>&-``, so that no other file gets them.

    Writing to such a stdout fails and is reported. Messages to such a stderr are discarded.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _flushed(code: int) -> int:
    """Flush stdout and return the exit code, which is 2 if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return code
    except OSError as error:
        return _output_failed(error)
    return code


def _output_failed(error: OSError) -> int:
    """Report that stdout cannot be written, and return the exit code."""
    from .output import say

    say(f"the output cannot be written: {error.strerror}")
    _drop_output()
    return 2


def _drop_output() -> None:
    """Discard the buffer of stdout, so that the interpreter does not flush it again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _main(given: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from .completion import complete

        complete(build_parser(), os.environ)
    # Without arguments no parser is made: argparse is 8 ms of the first paint.
    return run_arguments(build_parser(_command_of(given)).parse_args(given, Arguments()) if given else Arguments())


def run_arguments(arguments: Any) -> int:
    """Carry out what a parser made of a command line, and return the exit code.

    Args:
        arguments: has the attributes of `Arguments`, and those of its command.
    """
    from ..base.errors import TorchXTuiError
    from ..specs.errors import UnknownAppException

    try:
        return _carry_out(arguments)
    except TorchXTuiError as error:
        logging.getLogger(__name__).debug("the command failed", exc_info=True)
        from .output import say

        text = str(error)
        say(text if any(map(str.isalnum, text)) else f"the command failed without a reason ({type(error).__name__})")
        return 1 if isinstance(error, UnknownAppException) else 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader of the pipe has ended.
        _drop_output()
        return 0
    except Exception as error:  # what a scheduler of another package raises, or a file system
        from ..base.errors import describe_error
        from .output import say

        logging.getLogger(__name__).exception("the command failed")
        if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
            return _output_failed(error)
        say(describe_error(error))
        return 2


def _carry_out(arguments: Any) -> int:
    from ..base.files import refuse_foreign_folders
    from ..guest.settings import use_guest_settings

    refuse_foreign_folders()
    settings, problem = read_settings(arguments)
    components = settings.components
    with use_guest_settings(python=components.python, memory_gigabytes=components.memory_gigabytes):
        return _run_with_settings(arguments, settings, problem)


def _run_with_settings(arguments: Any, settings: Settings, problem: str) -> int:
    log_to_file(arguments.debug)
    is_dashboard = not getattr(arguments, "command", None)
    # The dashboard shows them itself; after it closes they are only logged.
    report_thread_failures((lambda _: None) if is_dashboard else _say_on_stderr)
    if problem:
        logging.getLogger(__name__).warning("%s", problem)
    # `torchx tui` has none.
    if is_dashboard:
        return open_dashboard(settings, problem, config_file=arguments.config)
    from . import run_command

    if problem:
        from .output import say

        say(problem)
    return run_command(arguments, settings)


def read_settings(arguments: Any) -> tuple[Settings, str]:
    """Return the settings of the file, overridden by the command line, and what is wrong with the file.

    Raises:
        ConfigError: the command line names a file that cannot be taken, or a profile that is not there.
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
    changes: dict[str, Any] = {}
    if arguments.theme:
        changes["theme"] = arguments.theme
    if arguments.ascii:
        changes["ascii"] = True
    if arguments.read_only:
        changes["read_only"] = True
    if arguments.fps:
        changes["frames_per_second"] = arguments.fps
    if arguments.no_mouse:
        changes["mouse"] = False
    if arguments.profile is not None:
        check_profile(arguments.profile, settings)
        changes["launch"] = dataclasses.replace(settings.launch, profile=arguments.profile)
    return dataclasses.replace(settings, **changes), problem


def _say_on_stderr(sentence: str) -> None:
    print(f"torchx-tui: {sentence}", file=sys.stderr)


def log_to_file(debug: bool) -> None:
    """Send loggers and warnings to a file: nothing may print to the terminal while the dashboard runs."""
    from ..base.files import NoHomeError, private_folder, state_folder

    logging.captureWarnings(True)
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    try:
        path = private_folder(state_folder()) / "torchx-tui.log"
        if is_file(path) and path.stat().st_size > LARGEST_LOG:
            path.replace(path.with_suffix(".log.1"))
        path.touch(mode=0o600)
        # A named pipe would be waited for.
        handler: logging.Handler = logging.FileHandler(path, delay=True) if is_file(path) else logging.NullHandler()
    except (OSError, NoHomeError):
        handler = logging.NullHandler()
    # A disk that becomes full costs the log its lines, and does not put tracebacks on the terminal.
    logging.raiseExceptions = False
    for earlier in [one for one in root.handlers if one.get_name() == _LOG_HANDLER]:
        root.removeHandler(earlier)
        earlier.close()
    handler.set_name(_LOG_HANDLER)
    handler.setFormatter(MaskingFormatter("%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"))
    root.addHandler(handler)


class MaskingFormatter(logging.Formatter):
    """Writes records with what looks secret in them masked: messages and tracebacks quote what users gave."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        from ..backends.shared.secrets import mask_text

        return mask_text("", super().format(record))


def _give_terminal_a_size() -> None:
    """Tell a terminal of unknown size, as containers have at first, that it is 80x24; it says so when it learns better.

    Textual and Rich take an unknown size for two different ones, and would draw in turns for each.
    """
    import fcntl
    import struct
    import termios

    for stream in (sys.stdin, sys.stderr):
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(stream.fileno())
            if not (columns and rows):
                size = struct.pack("HHHH", rows or 24, columns or 80, 0, 0)
                fcntl.ioctl(stream.fileno(), termios.TIOCSWINSZ, size)


def usual_frames(environ: Mapping[str, str]) -> int:
    """Return how often the screen is drawn a second where nobody chose, 0 for Textual's own way.

    Over SSH less often: every frame is bytes on somebody's link. So seldom that keys seem slow it never is.
    """
    from ..settings.choices import FRAMES_PER_SECOND

    least = FRAMES_PER_SECOND.start
    chosen = environ.get("TEXTUAL_FPS")
    if chosen and chosen.isdecimal():
        return max(least, int(chosen))
    return least if "SSH_CONNECTION" in environ else 0


def leave(code: int) -> NoReturn:
    """End the program without the interpreter's own end.

    Threads that read logs end with the program. In the midst of an expression of google-re2, which is C++, they cannot
    be unwound, and the interpreter's end would abort the program in place of its exit code.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def open_dashboard(
    settings: Settings,
    problem: str = "",
    *,
    launch: Callable[[Runner], str] | None = None,
    config_file: str | None = None,
) -> int:
    """Open the dashboard and end the program with its exit code; return that where there is no terminal.

    Args:
        settings: what the file and the command line chose.
        problem: what is wrong with the file, for the status line.
        launch: launches a job and returns its handle; the dashboard opens on that job.
        config_file: the config file of the command line, if there is one.

    Raises:
        TorchXTuiError: the job could not be launched.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        print("torchx-tui: the dashboard needs a terminal; `torchx-tui list` works without one", file=sys.stderr)
        return 2
    if (terminal := os.environ.get("TERM")) in _CANNOT_DRAW:
        print(
            f"torchx-tui: a terminal with TERM={terminal} cannot draw the dashboard; set TERM to what yours is, such "
            "as TERM=xterm-256color, or use `torchx-tui list`",
            file=sys.stderr,
        )
        return 2
    _give_terminal_a_size()
    # Textual reads these when it is imported.
    frames = settings.frames_per_second or usual_frames(os.environ)
    if frames:
        os.environ["TEXTUAL_FPS"] = str(frames)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

    import asyncio

    from ..base.timeouts import AwaitedCall
    from ..settings.make_runner import make_runner

    runner = make_runner(settings)
    try:
        opens = launch(runner) if launch else ""
        from ..tui.app import TorchXTuiApp

        app = TorchXTuiApp(runner, settings, problem=problem, opens=opens, config_file=config_file)
        # On a loop of its own: that of `asyncio.run` waits at its end for every thread that still works.
        result = app.run(mouse=settings.mouse, loop=asyncio.new_event_loop())
    finally:
        # What hangs in a backend ends with the process.
        AwaitedCall(runner.close, "close").wait(_LAST_SECONDS)
    # Whoever quits gives a code; without one it was a crash.
    leave(result if isinstance(result, int) else app.return_code or 1)
