"""What a batch script reads besides its positional arguments: variables with defaults, and options by `getopts`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# `${NAME:-text}`, `${NAME-text}`, `${NAME:=text}`, `${NAME:?why}`: the text may itself have one level of braces.
_READ = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?P<sign>:?[-=?])(?P<text>(?:[^{}]|\$\{[^{}]*\})*)\}")
_ASSIGNED = re.compile(r"(?:^|[;&|]\s*|\b(?:export|local|readonly|declare)\s+)\s*(?P<name>[A-Za-z_]\w*)=(?P<value>\S*)")
_LOOPED = re.compile(r"\b(?:for|read(?:\s+-\w+)*)\s+(?P<name>[A-Za-z_]\w*)")
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


def variables(lines: Iterable[str]) -> list[Variable]:
    """Return the variables that lines of a script read from the environment, in their order.

    One that the script sets itself is none, but for ``NAME=${NAME:-text}``.
    """
    found: dict[str, Variable] = {}
    own: set[str] = set()
    for line in lines:
        # A comment at the end of a line, as shells see it.
        line = re.sub(r"(?:^|\s)#.*$", "", line)
        for assigned in _ASSIGNED.finditer(line):
            name = assigned["name"]
            if not re.match(rf"\"?\$\{{{name}:?[-=?]", assigned["value"]) and name not in found:
                own.add(name)
        own.update(looped["name"] for looped in _LOOPED.finditer(line))
        for read in _READ.finditer(line):
            name, text = read["name"], read["text"].strip("\"'")
            if name in own or name in found or _SET_ELSEWHERE.fullmatch(name):
                continue
            if read["sign"].endswith("?"):
                found[name] = Variable(name, None, text)
            else:
                # What the shell has yet to work out is shown as nothing.
                found[name] = Variable(name, "" if re.search(r"[$`]", text) else text)
    return list(found.values())


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
