"""What a batch script reads besides its positional arguments: variables with defaults, and options by `getopts`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .shell_text import ShellText

_ASSIGNED = re.compile(r"(?P<maybe>(?:&&|\|\|)[ \t]*)?(?:^|(?<=[\s;&|({]))(?P<name>[A-Za-z_]\w*)\+?=", re.MULTILINE)
_LOOPED = re.compile(r"\b(?:for|read(?:\s+-\w+)*)\s+(?P<name>[A-Za-z_]\w*)")
_TOKEN = re.compile(r";;|[\n;&|(){}!]|[^\s;&|(){}!]+")
_OPENS, _CLOSES = ("if", "case", "for", "while", "until"), ("fi", "esac", "done")
# Those that a shell, a login or Slurm sets.
_SET_ELSEWHERE = re.compile(
    r"(?:SLURM|SLURMD|SBATCH|BASH|OMPI|PMI|PMIX|LC)_\w*"
    r"|HOME|USER|LOGNAME|PATH|PWD|OLDPWD|SHELL|TMPDIR|HOSTNAME|IFS|OPTARG|OPTIND|TERM|LANG|LD_LIBRARY_PATH|PYTHONPATH"
    r"|CUDA_VISIBLE_DEVICES|UID|EUID|RANDOM|SECONDS|PS1|DISPLAY"
)
_GETOPTS = re.compile(r"\bgetopts\s+(?P<quote>[\"']?)(?P<letters>:?[A-Za-z0-9:]+)(?P=quote)\s+\w+")
_ARM = re.compile(r"^\s*\(?(?P<quote>[\"']?)(?P<letter>[A-Za-z0-9])(?P=quote)\s*\)\s*(?P<body>.*)$")
_ARM_NAME = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)=\"?\$\{?OPTARG\}?\"?")


@dataclass(frozen=True)
class Variable:
    """A variable of the environment that a script reads.

    Args:
        name: its name.
        default: what the script takes where it is not set; None where it has to be.
        message: what the script says where it is not set.
    """

    name: str
    default: str | None
    message: str = ""


@dataclass(frozen=True)
class LetterOption:
    """An option of the script that `getopts` takes.

    Args:
        letter: its letter.
        name: the variable that its value becomes, else ``opt_`` and the letter.
        takes_value: whether it has a value.
    """

    letter: str
    name: str
    takes_value: bool


def variables(shell: ShellText, is_own: Callable[[int], bool]) -> list[Variable]:
    """Return the variables that a script reads from the environment, in their order.

    One that the script has set before for certain is none, but for ``NAME=${NAME:-text}``.

    Args:
        shell: the script.
        is_own: tells whether a position is one of the script itself, not of a function.
    """
    reads = {read.start: read for read in shell.reads}
    events: list[tuple[int, str, str]] = [(read.start, "read", "") for read in shell.reads if read.sign]
    for assigned in _ASSIGNED.finditer(shell.code):
        value = reads.get(assigned.end()) or reads.get(assigned.end() + 1)
        is_itself = value is not None and value.name == assigned["name"] and value.sign
        if not is_itself and not assigned["maybe"]:
            # Its value is read before.
            events.append((_value_end(shell, assigned.end()), "set", assigned["name"]))
    events += [(looped.start(), "set", looped["name"]) for looped in _LOOPED.finditer(shell.code)]
    events += [(position, "block", word) for position, word in _block_words(shell.code)]
    found: dict[str, Variable] = {}
    blocks: list[set[str]] = [set()]
    for position, kind, word in sorted(events):
        if not is_own(position):
            continue
        if kind == "block":
            _enter_or_leave(blocks, word)
        elif kind == "set":
            blocks[-1].add(word)
        else:
            read = reads[position]
            is_set = any(read.name in block for block in blocks)
            if read.name[0].isdigit() or is_set or read.name in found or _SET_ELSEWHERE.fullmatch(read.name):
                continue
            is_needed = read.sign == "?"
            # What the shell has yet to work out is shown as nothing.
            text = read.text or ""
            found[read.name] = Variable(read.name, None if is_needed else text, text if is_needed else "")
    return list(found.values())


def _value_end(shell: ShellText, start: int) -> int:
    """Return where the value of an assignment ends: behind the parameters that it is made of."""
    inside = next((read.end for read in reversed(shell.reads) if start <= read.start <= start + 1), start)
    return max(start, inside)


def _block_words(code: str) -> Iterator[tuple[int, str]]:
    """Yield the words that open, divide and close blocks, where a command may stand."""
    is_command = True
    for token in _TOKEN.finditer(code):
        word = token[0]
        if word == ";;" or (is_command and word in (*_OPENS, *_CLOSES, "else", "elif")):
            yield token.start(), word
        is_command = word in (";;", *"\n;&|(){}!", "then", "do", "else", "elif", "if", "while", "until")


def _enter_or_leave(blocks: list[set[str]], word: str) -> None:
    """Note a word of a block: what is set inside may not be set behind it."""
    if word in _OPENS:
        blocks.append(set())
    elif word in _CLOSES:
        blocks[1:] = blocks[1:-1]
    elif len(blocks) > 1:
        blocks[-1].clear()


def letter_options(lines: Sequence[str]) -> list[LetterOption]:
    """Return the options that the first `getopts` of a script takes, in its order."""
    called = next((found for line in lines if (found := _GETOPTS.search(line))), None)
    if called is None:
        return []
    names: dict[str, str] = {}
    for number, line in enumerate(lines):
        arm = _ARM.match(line)
        if arm is None:
            continue
        # The arm's first command may stand on the next line.
        if named := _ARM_NAME.match("\n".join([arm["body"], *lines[number + 1 : number + 2]])):
            names.setdefault(arm["letter"], named["name"])
    return [
        LetterOption(letter, names.get(letter, f"opt_{letter}"), colon == ":")
        for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", called["letters"])
    ]
