"""Reads errors from the lines of a log, each as one sentence: of a traceback, the exception's type and message.

Read are the tracebacks of Python, rich, typer, loguru, IPython and Ray, also behind a logger's prefix or in JSON,
chains of them and exception groups; boxes of typer and tyro; and single lines of the table in `error_kinds`.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeVar

from ..text.line_kinds import level_of, split_worker
from ..text.sanitize import plain
from .error_kinds import KILLED_KIND, TRACEBACK_KIND, USAGE_KIND, ErrorKind, KindFinder, Role, known_kinds

# The longest traceback, in its own lines.
MAX_TRACEBACK_LINES = 400
# Lines that are neither a frame nor an exception, such as another process may write into a traceback.
_MAX_FOREIGN_LINES = 8
# Lines of a message that are looked through for a traceback that follows from it, and that are joined to one sentence.
_MAX_LINES_BETWEEN, _MAX_JOINED = 6, 6
# Lines after the one that announces a traceback, such as "Exception ignored in: ...".
_MAX_LINES_BEFORE = 3
# The last lines of an output, where no error is recognised.
_LAST_LINES = 5
_LONGEST = 300

_TRACEBACK = re.compile(r"(?:Original |Exception Group |Remote )?Traceback \(most recent call last\)")
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.|<locals>\.)*[A-Za-z_]\w*)(?:\((?P<cause>\w+)\))?(?::(?:\s+(?P<message>.*))?)?$"
)
_LEVELS = frozenset({"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL", "TRACE", "SUCCESS"})
_FRAME = re.compile(r"[ \t]|[>-]+ ?(?:File \"|\d)|File \S+:\d|\"|line \d+, in ")
_NEXT = re.compile(r"During handling of the above|The above exception was|-- Process \d+ terminated|\"\"\"$")
# What a group draws before the lines of its exceptions: `  | `, `  +-+------ 1 ------`, `    +-----`.
_MARGIN = re.compile(r" *(?:\| ?|\+-\+?-{4,}(?: [\d.]+ -+)?|\+ (?=Exception Group))")
_FRAME_FILE = re.compile(r'  +File "')
_HAS_WORD = re.compile(r"\w")
# The indentation of messages in the columns of rich's log handler, at the least.
_CELL_INDENT = 8
_GROUP = re.compile(r"(?:Base)?ExceptionGroup$")
_SUB_EXCEPTION = re.compile(r"╭─+ Sub-exception #")
_DIGIT = re.compile(r"\d")
# What says nothing of a failure at the end of an output: bars, messages of loggers that are no error, advice.
_IDLE = re.compile(
    r"\d%\||\d(?:it|s|B)/s\b|\bit/s|(?<!\w)(?:DEBUG|INFO|WARN(?:ING)?)(?!\w)|[\[(][IW]\d{4} |[IW]\d{4} \d\d:\d\d"
    r"|Warning: |wandb: |Set the environment variable HYDRA_FULL_ERROR|(?i:\b(?:epoch|step|iter\w*|loss)\b.*\d)"
)
_KILLED = re.compile(r"failed \(exitcode: -(\d{1,3})\) local_rank: (\d{1,7})")
_LAST_WORDS = ErrorKind("last line", "", Role.SIGN)
# What a logger writes before a message: up to the level, or of glog `[E1126 10:45:13.040000 4127 `.
_GLOG = re.compile(r"\[?[EF]\d{3,4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ )?")


class ReadError(NamedTuple):
    """An error in a log.

    Attributes:
        number: the number of its first line.
        text: its sentence: of a traceback, the exception's type and message.
        kind: what it is; of a traceback with a consequence as its exception, that consequence's.
        worker: the prefix of the worker that printed it; empty without one.
        quote: its lines, without prefixes.
        used: the numbers of its lines.
    """

    number: int
    text: str
    kind: ErrorKind
    worker: str
    quote: tuple[str, ...]
    used: frozenset[int]

    @property
    def process(self) -> Hashable:
        """The process that printed it: torch adds `[rank0]: ` to what torchrun wrote."""
        return self.worker.partition("]")[0]


def read_error(lines: Iterable[tuple[int, str]], kinds: KindFinder) -> ReadError | None:
    """Read the error that begins at the first of some lines; None if none does.

    Args:
        lines: the lines of a log from there on, as they are shown, with their numbers.
        kinds: the table of errors.
    """
    rest = iter(lines)
    number, text = next(rest)
    kind = kinds.kind_of(text)
    if kind is None:
        return None
    worker, text = split_worker(text)
    own = _Lines(number, text, ((at, line) for at, line in _of_worker(rest, worker)))
    start = 0
    if kind.role in (Role.NOISE, Role.ASIDE):
        # It announces a traceback, which is one of its kind.
        near = range(1, _MAX_LINES_BEFORE + 1)
        start = next((at for at in near if _TRACEBACK.search(own.text(at) or "")), 0)
    if start or kind.name == TRACEBACK_KIND:
        return _read_traceback(own, start, kind, worker, kinds)
    if kind.name == USAGE_KIND and "─" in text:
        return _read_box(own, kind, worker)
    if kind.name == KILLED_KIND and (killed := _KILLED.search(text)):
        said = f"local rank {killed[2]} was killed by {_signal_name(int(killed[1]))}"
        return ReadError(number, said, kind, worker, (text.strip(),), frozenset({number}))
    said = _GLOG.sub("", text.strip(), count=1)
    if (level := level_of(said)) is not None and level.level == "error":
        start = level.start
        said = said[start - (said[start - 1 : start] in ("[", "(", "<")) :]
    if said.endswith(":") and (following := own.text(1)):
        said = f"{said} {following.strip()}"
    return ReadError(number, shorten(said), kind, worker, (text.strip(),), frozenset({number}))


def read_unknown(number: int, text: str) -> ReadError | None:
    """Read the line before the first of some errors that are all consequences, such as the text of ``sys.exit``.

    None if it can be no error: a progress bar, a message of a logger, part of a traceback.
    """
    worker, said = split_worker(text)
    if not said.strip() or said.startswith((" ", "\t")) or _IDLE.search(said):
        return None
    return ReadError(number, shorten(said), _LAST_WORDS, worker, (said.strip(),), frozenset({number}))


def read_errors(lines: list[str], kinds: KindFinder | None = None) -> list[ReadError]:
    """Read all errors of an output, in order.

    Args:
        lines: its lines, as they are shown.
        kinds: the table of errors, if it is another than the known one.
    """
    kinds = kinds or known_kinds()
    errors: list[ReadError] = []
    used: set[int] = set()
    for number in kinds.find(lines):
        if number not in used:
            error = read_error(zip(range(number, len(lines)), lines[number:], strict=False), kinds)
            if error is not None:
                errors.append(error)
                used |= error.used
    return errors


def last_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the last lines of an output that may tell why it ended: no progress bars, warnings or blank lines."""
    texts = (split_worker(line)[1].rstrip() for line in lines)
    kept = [text for text in texts if text and not _IDLE.search(text)]
    return tuple(kept[-_LAST_LINES:])


class AnyError(Protocol):
    """What `choose_error` needs to know of an error."""

    @property
    def kind(self) -> ErrorKind:
        """What it is."""
        ...

    @property
    def worker(self) -> str:
        """The prefix of the worker that printed it; empty without one."""
        ...

    @property
    def process(self) -> Hashable:
        """The process that printed it."""
        ...


_E = TypeVar("_E", bound=AnyError)


def choose_error(errors: Sequence[_E]) -> _E | None:
    """Return the error of an output that the others follow from; None if there are none.

    The highest role counts first. A process ends with its last error, and of several processes that share an output,
    the one that failed first is the cause. An error with the prefix of a worker goes before one without: the launcher
    prints there as well.

    Args:
        errors: the errors in order.
    """
    highest = max((error.kind.role for error in errors), default=None)
    chosen = [error for error in errors if error.kind.role == highest]
    last = {error.process: error for error in chosen}.values()
    return min([error for error in last if error.worker] or last, key=chosen.index, default=None)


class OutputError(NamedTuple):
    """Why a process ended, by its output.

    Attributes:
        sentence: in one line; empty where nothing tells.
        quote: the lines that say it.
        is_consequence: it says that another process failed before.
    """

    sentence: str = ""
    quote: str = ""
    is_consequence: bool = False


def explain_output(stderr: str, stdout: str = "", *, guess: bool = True) -> OutputError:
    """Find out why a process ended, from the end of its output.

    Args:
        stderr: what it wrote to stderr, or to either.
        stdout: what it wrote to stdout, where some programs write their errors.
        guess: whether the last lines of stderr are the reason if no error is recognised.
    """
    for text in (stderr, stdout):
        lines = [plain(line.expandtabs(4)) for line in text.splitlines()]
        errors = read_errors(lines)
        error = choose_error(errors)
        if error is not None and error.kind.is_consequence and (first := errors[0].number):
            error = read_unknown(first - 1, lines[first - 1]) or error
        if error is not None:
            return OutputError(error.text, "\n".join(error.quote), error.kind.is_consequence)
    said = last_lines(map(plain, stderr.splitlines())) if guess else ()
    return OutputError(shorten(said[-1]), "\n".join(said)) if said else OutputError()


class _Lines:
    """The lines of one worker from an error on, read as far as they are needed."""

    def __init__(self, number: int, text: str, rest: Iterator[tuple[int, str]]) -> None:
        # An exception in a JSON record is one line.
        record = _traceback_of_record(text)
        self._rest = rest
        self._known = [(number, line) for line in record] if record else [(number, text)]

    def text(self, at: int) -> str | None:
        """Return a line's text; None after the last one."""
        self._read(at)
        return self._known[at][1] if at < len(self._known) else None

    def used(self, end: int) -> frozenset[int]:
        """Return the numbers of the lines before one of them."""
        return frozenset(number for number, _ in self._known[:end])

    def _read(self, at: int) -> None:
        while len(self._known) <= min(at, MAX_TRACEBACK_LINES):
            following = next(self._rest, None)
            if following is None:
                return
            self._known.append(following)


def _of_worker(lines: Iterator[tuple[int, str]], worker: str) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        other, text = split_worker(line)
        if other == worker:
            yield number, text


def _traceback_of_record(text: str) -> list[str]:
    """Return the traceback in a line that is a JSON record; empty if there is none."""
    if not text.lstrip().startswith("{") or "\\n" not in text:
        return []
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return []
    values = record.values() if isinstance(record, dict) else ()
    found = next((value for value in values if isinstance(value, str) and _TRACEBACK.search(value)), "")
    return [plain(line) for line in found.splitlines()]


def _read_traceback(lines: _Lines, start: int, kind: ErrorKind, worker: str, kinds: KindFinder) -> ReadError:
    reader = _TracebackReader(lines)
    at: int | None = start
    while at is not None:
        at = reader.read(at)
    text, quote = reader.choose(kinds)
    text = text or (lines.text(start) or "").strip()
    found = kinds.kind_of(text) if kind.role is Role.CAUSE else None
    if found is not None and found.role < Role.SIGN:
        kind = found
    (number,) = lines.used(1)
    return ReadError(number, shorten(text), kind, worker, quote, lines.used(reader.end))


class _Link(NamedTuple):
    """One traceback of a chain: its exceptions, of a group all of them, and its lines."""

    exceptions: list[str]
    quote: list[str]


class _TracebackReader:
    """Reads a traceback, and those that follow from it.

    Attributes:
        end: the line after the last one that was read.
    """

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._links: list[_Link] = []
        self.end = 1

    def choose(self, kinds: KindFinder) -> tuple[str, tuple[str, ...]]:
        """Return the exception that tells most, and the lines of its traceback: the last one that is a cause."""
        for link in reversed(self._links):
            leaves = [text for text in link.exceptions if not _is_group(text)] or link.exceptions
            for text in leaves:
                if (kind := kinds.kind_of(text)) is None or kind.role >= Role.SIGN:
                    return text, tuple(link.quote)
        link = self._links[-1] if self._links else _Link([""], [])
        return link.exceptions[0], tuple(link.quote)

    def read(self, at: int) -> int | None:
        """Read the traceback that begins at a line; return where the one begins that follows from it, if any."""
        first = self._lines.text(at) or ""
        begins = _TRACEBACK.search(first)
        assert begins is not None
        head = first[: begins.start()]
        box = head.find("╭")
        is_group = begins[0].startswith("Exception Group")
        prefix = head[:box] if box >= 0 else re.sub(r" *\+ $", "", head) if is_group else head
        width = len(first.rstrip()) - box if box >= 0 else 0
        in_box, foreign = box >= 0, 0
        link = _Link([], [first[len(prefix) :].rstrip()])
        at += 1
        while (line := self._lines.text(at)) is not None and foreign <= _MAX_FOREIGN_LINES:
            line = _without_prefix(line, prefix)
            if is_group:
                margin = _MARGIN.match(line)
                if margin is None and link.exceptions:
                    break
                shown, line = line, line[margin.end() :] if margin else line
            else:
                shown = line
            is_exception = not in_box and _is_exception(line)
            if not in_box and not is_group and _TRACEBACK.search(line):
                break
            if is_exception:
                line, at = self._join(line, at, prefix, width)
                shown = shown[: len(shown) - len(shown.lstrip(" |"))] + line if is_group else line
                link.exceptions.append(line)
            elif in_box:
                in_box = not line.startswith("╰")
            elif line.startswith("╭"):
                in_box = True
            elif line.strip() and not is_group and not _FRAME.match(line):
                foreign += 1
            link.quote.append(shown.rstrip())
            at += 1
            self.end = at
            if is_exception and not is_group:
                at = self._read_rest(at, prefix, link)
                if not self._goes_on(at, prefix):
                    break
                self._links.append(link)
                link = _Link([], [])
        if not link.exceptions:
            return None
        self._links.append(link)
        return self._next(at, prefix)

    def _read_rest(self, at: int, prefix: str, link: _Link) -> int:
        """Read what belongs to an exception: more lines of its message, and of a group rich's boxes."""
        start = at
        while (line := self._lines.text(at)) is not None and line.startswith((" ", "\t")) and not prefix:
            if _FRAME_FILE.match(line) or at - start > _MAX_FOREIGN_LINES:
                return at
            link.quote.append(line.rstrip())
            at += 1
        if not _is_group(link.exceptions[-1]):
            self.end = max(self.end, at)
            return at
        depth = 0
        while (line := self._lines.text(at)) is not None:
            line = _without_prefix(line, prefix)
            if not depth and line.strip() and not _SUB_EXCEPTION.match(line):
                break
            if line.startswith("╭"):
                depth = 1
            elif line.startswith("╰"):
                depth = 0
            elif depth and _is_exception(inner := line.strip("│ ")) and not line.startswith("│ │"):
                link.exceptions.append(inner)
            link.quote.append(line.rstrip())
            at += 1
        self.end = max(self.end, at)
        return at

    def _goes_on(self, at: int, prefix: str) -> bool:
        """Tell whether frames follow an exception, as those of a task of Ray do."""
        for number in range(at, at + _MAX_FOREIGN_LINES):
            line = _without_prefix(self._lines.text(number) or "", prefix)
            if _FRAME_FILE.match(line):
                return True
            if not line.startswith(" "):
                return False
        return False

    def _next(self, at: int, prefix: str) -> int | None:
        is_announced, between = False, 0
        while (line := self._lines.text(at)) is not None and between <= _MAX_LINES_BETWEEN:
            begins = _TRACEBACK.search(line)
            if begins and (is_announced or begins[0].startswith("Original")):
                return at
            if begins:
                return None
            line = _without_prefix(line, prefix)
            is_announced = is_announced or _NEXT.match(line) is not None
            between += bool(line.strip())
            at += 1
        return None

    def _join(self, line: str, at: int, prefix: str, width: int) -> tuple[str, int]:
        """Return an exception's line with what was wrapped of it, or a message that goes on, and its last line."""
        said = last = line.strip()
        is_cell = len(prefix) >= _CELL_INDENT and prefix.isspace()
        for _ in range(_MAX_JOINED):
            following = self._lines.text(at + 1) or ""
            rest = _without_prefix(following, prefix).strip()
            if is_cell:
                is_wrapped = following[: len(prefix)].isspace() and len(following) > len(prefix)
            else:
                is_wrapped = 0 < width < len(last) + 1 + len(rest.partition(" ")[0])
            if (
                not (is_wrapped or said.endswith(":"))
                or not _HAS_WORD.search(rest)
                or rest.startswith(("╭", "│", "--"))
            ):
                break
            if _TRACEBACK.search(rest):
                break
            said, last, at = f"{said} {rest}", rest, at + 1
        return said, at


def _read_box(lines: _Lines, kind: ErrorKind, worker: str) -> ReadError:
    quote = [(lines.text(0) or "").rstrip()]
    said: list[str] = []
    while (line := lines.text(len(quote))) is not None and line.startswith("│"):
        quote.append(line.rstrip())
        said.append(line.strip("│ "))
    told = " ".join(takewhile(_HAS_WORD.search, said)) or quote[0].strip("╭╮─ ")
    (number,) = lines.used(1)
    return ReadError(number, shorten(told), kind, worker, tuple(quote), lines.used(len(quote)))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_exception(line: str) -> bool:
    found = _EXCEPTION.match(line)
    if found is None or found["type"] in _LEVELS:
        return False
    return "." in found["type"] or found["type"][0].isupper() or found["type"][0] == "_"


def _is_group(exception: str) -> bool:
    found = _EXCEPTION.match(exception)
    return found is not None and _GROUP.search(found["type"]) is not None


def _without_prefix(line: str, prefix: str) -> str:
    """Strip what a logger wrote before a line, where it has the form of the prefix of the first one."""
    size = len(prefix)
    return line[size:] if size and _DIGIT.sub("0", line[:size]) == _DIGIT.sub("0", prefix) else line


def shorten(text: str) -> str:
    """Return a text as one line of at most 300 characters, safe to show."""
    text = " ".join(plain(text).split()).rstrip(":")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
