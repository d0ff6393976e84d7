"""Parser that reduces each error in a log to one sentence, such as the type and message of an exception.

It supports tracebacks of Python, rich, typer, loguru, IPython and Ray, with chains and exception groups, also behind a
logger's prefix or in JSON. It also supports boxes of typer and tyro, and the one-line errors in `error_kinds`.
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

# Maximum lines of one traceback; lines of other workers in between do not count.
MAX_TRACEBACK_LINES = 400
# A traceback ends after this many lines of other output, which another process may write into it.
_MAX_FOREIGN_LINES = 8
# Lines searched for the next traceback of a chain, and wrapped lines joined to one message.
_MAX_LINES_BETWEEN, _MAX_JOINED = 6, 6
# Lines from an announcement such as "Exception ignored in: ..." to its traceback.
_MAX_LINES_BEFORE = 3
# Last lines of an output to show if no error is recognised.
_LAST_LINES = 5
_LONGEST = 300

_TRACEBACK = re.compile(r"(?:Original |Exception Group |Remote )?Traceback \(most recent call last\)")
_EXCEPTION = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w*\.|<locals>\.)*[A-Za-z_]\w*)(?:\((?P<cause>\w+)\))?(?::(?:\s+(?P<message>.*))?)?$"
)
_LEVELS = frozenset({"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL", "TRACE", "SUCCESS"})
_FRAME = re.compile(r"[ \t]|[>-]+ ?(?:File \"|\d)|File \S+:\d|\"|line \d+, in ")
_NEXT = re.compile(r"During handling of the above|The above exception was|-- Process \d+ terminated|\"\"\"$")
# Margin of the exceptions in a group: `  | `, `  +-+------ 1 ------`, `    +-----`.
_MARGIN = re.compile(r" *(?:\| ?|\+-\+?-{4,}(?: [\d.]+ -+)?|\+ (?=Exception Group))")
_FRAME_FILE = re.compile(r'  +File "')
_HAS_WORD = re.compile(r"\w")
# Minimum indentation of messages in the columns of rich's log handler.
_CELL_INDENT = 8
_GROUP = re.compile(r"(?:Base)?ExceptionGroup$")
_SUB_EXCEPTION = re.compile(r"╭─+ Sub-exception #")
_DIGIT = re.compile(r"\d")
# Last lines that do not explain a failure: progress bars, log messages below ERROR, advice.
_IDLE = re.compile(
    r"\d%\||\d(?:it|s|B)/s\b|\bit/s|(?<!\w)(?:DEBUG|INFO|WARN(?:ING)?)(?!\w)|[\[(][IW]\d{4} |[IW]\d{4} \d\d:\d\d"
    r"|Warning: |wandb: |Set the environment variable HYDRA_FULL_ERROR|(?i:\b(?:epoch|step|iter\w*|loss)\b.*\d)"
)
_KILLED = re.compile(r"failed \(exitcode: -(\d{1,3})\) local_rank: (\d{1,7})")
# An exception of C++ and its message, as the C++ runtime prints them.
_THROWN = re.compile(r"terminate called after throwing an instance of '([^']+)'")
_WHAT = re.compile(r" *what\(\): +(.+)")
_LAST_LINE = ErrorKind("last line", "", Role.SIGN)
# The prefix that glog writes before a message: `[E1126 10:45:13.040000 4127 `.
_GLOG = re.compile(r"\[?[EF]\d{3,4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ )?")


class ReadError(NamedTuple):
    """An error in a log.

    Attributes:
        number: the number of its first line.
        text: the error in one sentence, such as the type and message of an exception.
        kind: its kind; a traceback whose exception is a consequence has the kind of that consequence.
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
        """The prefix that identifies the process: the first one, since PyTorch adds `[rank0]: ` after torchrun's."""
        return self.worker.partition("]")[0]


def read_error(lines: Iterable[tuple[int, str]], kinds: KindFinder) -> ReadError | None:
    """Read the error that begins at the first line; return None if no error begins there.

    Args:
        lines: numbered lines of a log, sanitized.
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
        # The line may announce a traceback, which then has the same kind.
        near = range(1, _MAX_LINES_BEFORE + 1)
        start = next((at for at in near if _TRACEBACK.search(own.text(at) or "")), 0)
    if start or kind.name == TRACEBACK_KIND:
        return _read_traceback(own, start, kind, worker, kinds)
    if kind.name == USAGE_KIND and "─" in text:
        return _read_box(own, kind, worker)
    if kind.name == KILLED_KIND and (killed := _KILLED.search(text)):
        sentence = f"local rank {killed[2]} was killed by {_signal_name(int(killed[1]))}"
        return ReadError(number, sentence, kind, worker, (text.strip(),), frozenset({number}))
    if (thrown := _THROWN.match(text)) and (what := _WHAT.match(own.text(1) or "")):
        return ReadError(number, shorten(f"{thrown[1]}: {what[1]}"), kind, worker, (text, what[0]), own.used(2))
    sentence = _GLOG.sub("", text.strip(), count=1)
    if (level := level_of(sentence)) is not None and level.level == "error":
        start = level.start
        sentence = sentence[start - (sentence[start - 1 : start] in ("[", "(", "<")) :]
    if sentence.endswith(":") and (following := own.text(1)):
        sentence = f"{sentence} {following.strip()}"
    return ReadError(number, shorten(sentence), kind, worker, (text.strip(),), frozenset({number}))


def read_unknown(number: int, text: str) -> ReadError | None:
    """Read a line of no known kind as an error, such as the message of ``sys.exit`` before its consequences.

    Return None for a progress bar, a log message below ERROR, or a part of a traceback.
    """
    worker, sentence = split_worker(text)
    if not sentence.strip() or sentence.startswith((" ", "\t")) or _IDLE.search(sentence):
        return None
    return ReadError(number, shorten(sentence), _LAST_LINE, worker, (sentence.strip(),), frozenset({number}))


def read_errors(lines: list[str], kinds: KindFinder | None = None) -> list[ReadError]:
    """Read all errors of an output, in order.

    Args:
        lines: the lines of the output, sanitized.
        kinds: the table of errors; the default table if None.
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


def read_last_error(text: str) -> ReadError | None:
    """Return the error that a process ended with: the last one in its output, except for reports of launchers.

    Args:
        text: the end of the output of one process.
    """
    errors = read_errors([plain(line.expandtabs(4)) for line in text.splitlines()])
    return next((error for error in reversed(errors) if error.kind.role > Role.WRAPPER), None)


def last_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the last lines of an output, without progress bars, warnings and blank lines."""
    texts = (split_worker(line)[1].rstrip() for line in lines)
    kept = [text for text in texts if text and not _IDLE.search(text)]
    return tuple(kept[-_LAST_LINES:])


class AnyError(Protocol):
    """The attributes that `choose_error` reads."""

    @property
    def kind(self) -> ErrorKind:
        """The kind of the error."""
        ...

    @property
    def worker(self) -> str:
        """The prefix of the worker that printed it; empty without one."""
        ...

    @property
    def process(self) -> Hashable:
        """An id of the process that printed it."""
        ...


_E = TypeVar("_E", bound=AnyError)


def choose_error(errors: Sequence[_E]) -> _E | None:
    """Return the error that caused the others; None if there are no errors.

    Only errors with the highest role are considered. A process ends with its last error. If several processes share an
    output, the one that failed first is the cause. Errors of workers come before errors without a prefix, which the
    launcher prints.

    Args:
        errors: the errors in order.
    """
    highest = max((error.kind.role for error in errors), default=None)
    chosen = [error for error in errors if error.kind.role == highest]
    last = {error.process: error for error in chosen}.values()
    return min([error for error in last if error.worker] or last, key=chosen.index, default=None)


class OutputError(NamedTuple):
    """The error in the output of a process.

    Attributes:
        sentence: the error in one line; empty if there is none.
        quote: the lines of the error.
        is_consequence: the error follows from the failure of another process.
    """

    sentence: str = ""
    quote: str = ""
    is_consequence: bool = False


def explain_output(stderr: str, stdout: str = "", *, guess: bool = True) -> OutputError:
    """Find the error that ended a process in the end of its output.

    Args:
        stderr: the end of stderr, or of both streams together.
        stdout: the end of stdout, where some programs write their errors.
        guess: return the last lines of stderr if no error is recognised; False for a process that a signal ended.
    """
    for text in (stderr, stdout):
        lines = [plain(line.expandtabs(4)) for line in text.splitlines()]
        errors = read_errors(lines)
        error = choose_error(errors)
        if error is not None and error.kind.is_consequence and (first := errors[0].number):
            error = read_unknown(first - 1, lines[first - 1]) or error
        # A shell's or launcher's line about its child says less than the signal that ended the process.
        if error is not None and (guess or error.kind.role > Role.WRAPPER):
            return OutputError(error.text, "\n".join(error.quote), error.kind.is_consequence)
    last = last_lines(map(plain, stderr.splitlines())) if guess else ()
    return OutputError(shorten(last[-1]), "\n".join(last)) if last else OutputError()


class _Lines:
    """The lines of one worker, beginning with an error; read lazily."""

    def __init__(self, number: int, text: str, rest: Iterator[tuple[int, str]]) -> None:
        # An exception in a JSON record is one line.
        record = _traceback_of_record(text)
        self._rest = rest
        self._known = [(number, line) for line in record] if record else [(number, text)]

    def text(self, at: int) -> str | None:
        """Return the text of a line; None past the end."""
        self._read(at)
        return self._known[at][1] if at < len(self._known) else None

    def used(self, end: int) -> frozenset[int]:
        """Return the line numbers before a position."""
        return frozenset(number for number, _ in self._known[:end])

    def _read(self, at: int) -> None:
        while len(self._known) <= min(at, MAX_TRACEBACK_LINES):
            following = next(self._rest, None)
            if following is None:
                return
            self._known.append(following)


def _of_worker(lines: Iterator[tuple[int, str]], worker: str) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        # An indented line has a space behind torchrun's prefix, an empty one none behind torch's.
        other, text = split_worker(line)
        if other.rstrip() == worker.rstrip():
            yield number, line[len(worker) :] if line.startswith(worker) else text


def _traceback_of_record(text: str) -> list[str]:
    """Return the lines of the traceback in a JSON record; empty if there is none."""
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
    """One traceback of a chain: its exception, or all exceptions of a group, and its lines."""

    exceptions: list[str]
    quote: list[str]


class _TracebackReader:
    """Parser of a traceback and of the chain that follows it.

    Attributes:
        end: the position after the last line of the chain.
    """

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self._links: list[_Link] = []
        self.end = 1

    def choose(self, kinds: KindFinder) -> tuple[str, tuple[str, ...]]:
        """Return the last exception that is not a consequence, and the lines of its traceback."""
        others = len(self._links) - 1
        head = [f"[{others} more traceback{'' if others == 1 else 's'} of this error in the log]"] if others > 0 else []
        for link in reversed(self._links):
            leaves = [text for text in link.exceptions if not _is_group(text)] or link.exceptions
            for text in leaves:
                if (kind := kinds.kind_of(text)) is None or kind.role >= Role.SIGN:
                    more = f" (and {len(leaves) - 1} more)" if 1 < len(leaves) < len(link.exceptions) else ""
                    return f"{text}{more}", (*head, *link.quote)
        link = self._links[-1] if self._links else _Link([""], [])
        return link.exceptions[0], (*head, *link.quote)

    def read(self, at: int) -> int | None:
        """Read the traceback at a position; return the position of the next one in its chain, if any."""
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
                if not self._has_frames_after(at, prefix):
                    break
                self._links.append(link)
                link = _Link([], [])
        if not link.exceptions:
            return None
        self._links.append(link)
        return self._next(at, prefix)

    def _read_rest(self, at: int, prefix: str, link: _Link) -> int:
        """Read the further lines of an exception's message, and the boxes that rich draws for a group."""
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

    def _has_frames_after(self, at: int, prefix: str) -> bool:
        """Return whether frames follow an exception, as in errors of Ray tasks."""
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
        """Join an exception with its wrapped or continued lines; return the text and the position of the last line."""
        text = last = line.strip()
        is_cell = len(prefix) >= _CELL_INDENT and prefix.isspace()
        for _ in range(_MAX_JOINED):
            following = self._lines.text(at + 1) or ""
            rest = _without_prefix(following, prefix).strip()
            if is_cell:
                is_wrapped = following[: len(prefix)].isspace() and len(following) > len(prefix)
            else:
                is_wrapped = 0 < width < len(last) + 1 + len(rest.partition(" ")[0])
            if (
                not (is_wrapped or text.endswith((":", ",")))
                or not _HAS_WORD.search(rest)
                or rest.startswith(("╭", "│", "--"))
            ):
                break
            if _TRACEBACK.search(rest):
                break
            text, last, at = f"{text} {rest}", rest, at + 1
        return text, at


def _read_box(lines: _Lines, kind: ErrorKind, worker: str) -> ReadError:
    quote = [(lines.text(0) or "").rstrip()]
    parts: list[str] = []
    while (line := lines.text(len(quote))) is not None and line.startswith("│"):
        quote.append(line.rstrip())
        parts.append(line.strip("│ "))
    text = " ".join(takewhile(_HAS_WORD.search, parts)) or quote[0].strip("╭╮─ ")
    (number,) = lines.used(1)
    return ReadError(number, shorten(text), kind, worker, tuple(quote), lines.used(len(quote)))


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
    """Strip a logger's prefix that equals the given one except for its digits."""
    size = len(prefix)
    return line[size:] if size and _DIGIT.sub("0", line[:size]) == _DIGIT.sub("0", prefix) else line


def shorten(text: str) -> str:
    """Return a text as one line of at most 300 characters, safe to show."""
    text = " ".join(plain(text).split()).rstrip(":")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
