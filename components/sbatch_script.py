"""Reads a batch script of sbatch without running it: options, arguments, variables and comment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from ..specs.errors import ComponentLoadError
from ..specs.sbatch_options import DIRECTIVE, HET, OPTIONS, directive_lines, options_of, script_options
from .shell_text import Read, ShellText
from .source import existing_file, read_bytes

SUFFIX = ".sbatch"
"""Files with this suffix are scripts; other files only if their name has a slash."""
REST = "args"
"""The parameter for the arguments after those with names."""
MOST_DIFFERENCES = 50
"""How many lines `differing_lines` returns at most."""
_MOST_COMPARED = 2000
# `#SBATCH`, and `##SBATCH`, which is disabled.
_SWITCHED_OFF = re.compile(r"#+\s*SBATCH\b")
# The text before `$1` in an assignment: `NAME=$1`, `NAME="${2:-text}"`.
_NAMED = re.compile(r"(?:^|(?<=[\s;]))(?P<name>[A-Za-z_]\w*)=(?P<quote>\"?)$")
# Assignments at the start of a line; indented ones may be in a block that is skipped.
_ASSIGNMENTS = re.compile(
    r"^(?:(?:export|declare|readonly|typeset)[ \t]+(?:-\w+[ \t]+)*)?(?:[A-Za-z_]\w*\+?=(?:\"[^\"]*\"|\S)*[ \t]*)+",
    re.MULTILINE,
)
_ASSIGNED = re.compile(r"(?:^|(?<=\s))(?P<name>[A-Za-z_]\w*)\+?=")
_LOOPED = re.compile(r"\b(?:for|read(?:\s+-\w+)*)\s+(?P<name>[A-Za-z_]\w*)")
# Variables that a shell, a login or Slurm sets.
SET_ELSEWHERE = re.compile(
    r"(?:SLURM|SLURMD|SBATCH|BASH|OMPI|PMI|PMIX|LC)_\w*"
    r"|HOME|USER|LOGNAME|PATH|PWD|OLDPWD|SHELL|TMPDIR|HOSTNAME|IFS|OPTARG|OPTIND|TERM|LANG|LD_LIBRARY_PATH|PYTHONPATH"
    r"|CUDA_VISIBLE_DEVICES|UID|EUID|RANDOM|SECONDS|PS1|DISPLAY"
)
_MOVED = re.compile(r"^\s*(?:shift|while\s+getopts|getopts|set\s+--)\b|\bgetopt\b")
_FUNCTION = re.compile(r"^\s*(?:function\s+\w+|\w+\s*\(\))[^{]*\{")


def is_batch_name(name: str) -> bool:
    """Return whether a name is that of a batch script: ``train.sbatch``, ``./train.sh``."""
    return (
        ":" not in name
        and not name.endswith(".py")
        and not name.startswith("-")
        and (name.endswith(SUFFIX) or "/" in name)
    )


def is_script(text: str) -> bool:
    """Return whether a text is a batch script with `#SBATCH` lines."""
    return text.startswith("#!") and any(map(DIRECTIVE.match, text.splitlines()[:200]))


class ScriptValue(NamedTuple):
    """A positional argument or a variable of the environment that a script reads.

    Args:
        name: the variable that it is, or becomes; ``arg1`` for an argument without one.
        default: its value if it is not given; None if it is required.
        message: the script's message if it is not given.
    """

    name: str
    default: str | None
    message: str = ""


@dataclass(frozen=True)
class SbatchScript:
    """A batch script.

    Args:
        path: its file.
        text: what is in it.
    """

    path: Path
    text: str

    @cached_property
    def options(self) -> dict[str, str]:
        """The values of the options in its `#SBATCH` lines; a flag is ``true``, the last of several counts."""
        return script_options(self.text)

    @property
    def is_het(self) -> bool:
        """Whether its job has several components, each with options of its own."""
        return any(words[0] in HET for _, words in directive_lines(self.text))

    @cached_property
    def shell(self) -> ShellText:
        """Its parsed text."""
        return ShellText(self.text)

    @cached_property
    def _own_lines(self) -> dict[int, str]:
        """The lines outside of functions, without comments and quotes, by their numbers."""
        found, inside = {}, False
        for number, line in enumerate(self.shell.code.split("\n"), 1):
            if inside:
                inside = not line.startswith("}")
            elif _FUNCTION.match(line):
                inside = "}" not in line
            else:
                found[number] = line
        return found

    def _is_own(self, position: int) -> bool:
        return self.shell.line_of(position) in self._own_lines

    @cached_property
    def _reads(self) -> list[Read]:
        """What it reads outside of functions."""
        return [read for read in self.shell.reads if self._is_own(read.start)]

    @cached_property
    def positionals(self) -> list[ScriptValue]:
        """The positional arguments that it uses by number, in order; none if it loops over them."""
        if any(map(_MOVED.search, self._own_lines.values())):
            return []
        numbered = [read for read in self._reads if len(read.name) == 1 and read.name.isdigit()]
        named: dict[str, ScriptValue] = {}
        for read in numbered:
            name, is_certain = self._name_of(read)
            if name or read.sign == "?":
                value = _value_of(read, name or f"arg{read.name}")
                if not is_certain:
                    value = value._replace(default=value.default or "")
                named.setdefault(read.name, value)
        taken: set[str] = {REST, *self.options, *(option.name for option in OPTIONS.values() if option.help)}
        made = []
        for number in range(1, max((int(read.name) for read in numbered), default=0) + 1):
            value = named.get(str(number), ScriptValue(f"arg{number}", ""))
            if value.name in taken:
                value = value._replace(name=f"arg{number}")
            taken.add(value.name)
            made.append(value)
        return made

    def _name_of(self, read: Read) -> tuple[str, bool]:
        """Return the variable that a positional argument becomes as a whole, and whether it does in any case."""
        code = self.shell.code
        before = code[code.rfind("\n", 0, read.start) + 1 : read.start]
        found = _NAMED.search(before)
        if found is None or not re.match(rf"{found['quote']}(?:[\s;&|)]|$)", code[read.end :]):
            return "", True
        return found["name"], not before[: found.start()].rstrip().endswith(("&&", "||"))

    @cached_property
    def variables(self) -> list[ScriptValue]:
        """The variables of the environment that it reads with a default or a message."""
        taken = {REST, *self.options, *OPTIONS, *(positional.name for positional in self.positionals)}
        assigned_at = self._assignments()
        found: dict[str, ScriptValue] = {}
        for read in self._reads:
            if (
                read.sign
                and not read.name[0].isdigit()
                and read.name not in taken
                and not SET_ELSEWHERE.fullmatch(read.name)
                and read.start < assigned_at.get(read.name, len(self.text))
            ):
                found.setdefault(read.name, _value_of(read, read.name))
        return list(found.values())

    def _assignments(self) -> dict[str, int]:
        """Return the position of the first assignment of each variable, except `NAME=${NAME:-text}`."""
        itself = {(read.start, read.name) for read in self.shell.reads}
        assigned = [
            (one["name"], line.start() + one.end())
            for line in _ASSIGNMENTS.finditer(self.shell.code)
            for one in _ASSIGNED.finditer(line[0])
        ]
        places = [(name, start) for name, start in assigned if not {(start, name), (start + 1, name)} & itself]
        places += [(looped["name"], looped.start()) for looped in _LOOPED.finditer(self.shell.code)]
        # The first one of a name is the last that is put in.
        return dict(reversed([place for place in places if self._is_own(place[1])]))

    @property
    def comment(self) -> str:
        """The comment below its first line, up to the first other line."""
        lines = []
        for line in self.text.splitlines()[1:]:
            if not line.startswith("#") or _SWITCHED_OFF.match(line):
                if any(lines) or (line.strip() and not line.startswith("#")):
                    break
                continue
            lines.append(line.strip("#").strip())
        return "\n".join(lines).strip()


def read_script(name: str) -> SbatchScript:
    """Read a script.

    Raises:
        ComponentNotFoundException: there is no such file.
        ComponentLoadError: it cannot be read, or is no script that sbatch takes.
    """
    path = existing_file(name)
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except ValueError as error:
        raise ComponentLoadError(str(path), None, "it is not UTF-8 text") from error
    if "\0" in text:
        raise ComponentLoadError(str(path), None, "it has NUL characters, so it is not a script")
    if not text.startswith("#!"):
        reason = "its first line is not #! with an interpreter, such as #!/bin/bash, which sbatch requires"
        raise ComponentLoadError(str(path), 1, reason)
    if "\r\n" in text:
        raise ComponentLoadError(str(path), 1, "it has DOS line ends, which sbatch refuses: `dos2unix` converts them")
    return SbatchScript(path, text)


def differing_lines(before: str, now: str) -> list[tuple[int, str, str]]:
    """Return the lines in which two versions of a script differ.

    Args:
        before: the earlier text.
        now: the present text.

    Returns:
        Of each line its number in the present text, from 1, what it was and what it is; at most `MOST_DIFFERENCES`.
    """
    old, new = before.splitlines(), now.splitlines()
    if max(len(old), len(new)) > _MOST_COMPARED:
        # Comparing takes time by the square of the lines.
        return [] if old == new else [(1, f"{len(old):,} lines", f"{len(new):,} lines, others than before")]
    found: list[tuple[int, str, str]] = []
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            pairs = zip_longest(old[first:last], new[start:end], fillvalue="")
            found += [(start + place, then, after) for place, (then, after) in enumerate(pairs, 1)]
    return found[:MOST_DIFFERENCES]


class ScriptLine(NamedTuple):
    """A line of a script, and the changes to it.

    Args:
        number: its number, from 1; 0 for an option that the script does not have.
        text: the line; empty for an option that the script does not have.
        given: the options and values that override the line's, each as ``name=value``.
    """

    number: int
    text: str
    given: tuple[str, ...] = ()


def lines_with_changes(text: str, changed: Mapping[str, str]) -> list[ScriptLine]:
    """Return the lines of a script with the changes to them; added options follow the last `#SBATCH` line.

    Args:
        text: the script.
        changed: the texts of the changed options, arguments and variables, by name.
    """
    shell = ShellText(text)
    directives = dict(directive_lines(text))
    # Of several lines with an option the last one counts.
    places = {key: number for number, words in directives.items() for key in options_of(words)}
    for name in changed.keys() - places.keys() - OPTIONS.keys():
        # A positional argument that the script gives no name is called after its number.
        word = name.removeprefix("arg") if name.removeprefix("arg").isdecimal() else name
        starts = [read.start for read in shell.reads if read.name == word]
        if assigned := re.search(rf"(?:^|(?<=[\s;])){re.escape(word)}=", shell.code, re.MULTILINE):
            starts.append(assigned.start())
        places[name] = shell.line_of(min(starts)) if starts else -1
    given: dict[int, list[str]] = {}
    for name, value in changed.items():
        given.setdefault(places.get(name, 0), []).append(f"{name}={value}")
    lines = enumerate(text.splitlines(), 1)
    made = [ScriptLine(number, line, tuple(given.get(number, ()))) for number, line in lines]
    last = max(directives, default=1)
    return [*made[:last], *(ScriptLine(0, "", (added,)) for added in given.get(0, ())), *made[last:]]


def _value_of(read: Read, name: str) -> ScriptValue:
    """Return what is read, with its default or message; one that the shell computes is empty."""
    text = read.text or ""
    return ScriptValue(name, text) if read.sign in ("-", "=") else ScriptValue(name, None, text)
