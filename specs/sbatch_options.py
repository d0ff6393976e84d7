"""The options of sbatch: names, letters, kinds, choices, and parsers for scripts and commands.

Source: sbatch(1) of Slurm 22.05, with the options that 23.02 to 26.05 added. An option that is not here has a value
where it is written with one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# A line each: name, letter or -, kind, choices where only these are values, help of those that every form shows.
# `flag` has no value; `text?` may have one; `time`, `memory` and `int` are checked.
_TABLE = """
partition            p text - | The partition to run in; several are separated by commas
nodes                N text - | How many nodes, "4" or "2-4"
ntasks               n int - | How many tasks srun starts
ntasks-per-node      - int - | How many tasks srun starts on each node
cpus-per-task        c int - | CPUs of each task
gpus                 G text - | GPUs of the job in all, "8" or "a100:8"
gpus-per-node        - text - | GPUs of each node, "4" or "a100:4"
gpus-per-task        - text - | GPUs of each task
gres                 - text - | Generic resources of each node, such as "gpu:a100:4"
mem                  - memory - | Memory of each node, such as "64G"; 0 is all of it
mem-per-cpu          - memory - | Memory of each CPU, such as "4G"
time                 t time - | The time limit: "minutes", "hours:minutes:seconds", "days-hours", "days-hours:minutes"
account              A text - | The account to charge
qos                  q text - | Quality of service
job-name             J text - | The job's name; the script's file name if not set
array                a text - | Numbers of tasks, such as "0-19%2": the script runs once for each, %2 at once
dependency           d text - | Jobs to wait for, such as "afterok:123"
begin                b text - | The earliest start, such as "now+2hours"
constraint           C text - | Features that its nodes must have
nodelist             w text - | Nodes that the job must have, such as "gpu[01-04]"
exclude              x text - | Nodes that the job must not have
reservation          - text - | The reservation to take resources from
exclusive            - text? user,mcs,topo | No other job runs on its nodes: yes, or what else to keep off
signal               - text - | The signal to send before the time limit, "[B:]SIGNAL[@SECONDS]"
requeue              - flag - | Run it again from its beginning after a node failed or a better job took its nodes
output               o text - | The file of its output, such as "logs/%x-%j.out"
error                e text - | The file of its errors; that of its output if not set
open-mode            - text append,truncate | What becomes of that file when the job is requeued
mail-type            - text - | What to mail on: BEGIN, END, FAIL, ALL and others
mail-user            - text - | Whom to mail
comment              - text - | A comment on the job
chdir                D text - | The folder to run in
acctg-freq           - text -
batch                - text -
bb                   - text -
bbf                  - text -
cluster-constraint   - text -
clusters             M text -
consolidate-segments - flag -
container            - text -
container-id         - text -
container-type       - text -
contiguous           - flag -
core-spec            S int -
cores-per-socket     - int -
cpu-freq             - text -
cpus-per-gpu         - int -
deadline             - text -
delay-boot           - int -
distribution         m text -
export               - text -
export-file          - text -
extra                - text -
extra-node-info      B text -
get-user-env         - text? -
gid                  - text -
gpu-bind             - text -
gpu-freq             - text -
gpus-per-socket      - text -
gres-flags           - text -
hint                 - text -
hold                 H flag -
ignore-pbs           - flag -
input                i text -
kill-on-invalid-dep  - text yes,no
licenses             L text -
mcs-label            - text -
mem-bind             - text -
mem-per-gpu          - memory -
mem-update           - text -
mincpus              - int -
network              - text -
nice                 - text? -
no-kill              k text? off
no-requeue           - flag -
nodefile             F text -
ntasks-per-core      - int -
ntasks-per-gpu       - int -
ntasks-per-socket    - int -
oom-kill-step        - text? -
overcommit           O flag -
oversubscribe        s flag -
parsable             - flag -
power                - text -
prefer               - text -
priority             - int -
profile              - text -
propagate            - text? -
quiet                Q flag -
reboot               - flag -
resources            - text -
resv-ports           - text? -
segment              - text -
sockets-per-node     - int -
spread-job           - flag -
spread-segments      - flag -
stepmgr              - flag -
switches             - text -
test-only            - flag -
thread-spec          - int -
threads-per-core     - int -
time-min             - time -
tmp                  - memory -
tres-bind            - text -
tres-per-task        - text -
treewidth            - text -
uid                  - text -
use-min-nodes        - flag -
verbose              v flag -
wait                 W flag -
wait-all-nodes       - text 0,1
wckey                - text -
wrap                 - text -
"""
_TIME = re.compile(r"(?:\d+-)?\d+(?::\d+){0,2}|UNLIMITED|INFINITE|-1", re.IGNORECASE)
_MEMORY = re.compile(r"\d+(?:\.\d+)?(?:[KMGTP]B?)?", re.IGNORECASE)


@dataclass(frozen=True)
class SbatchOption:
    """An option of sbatch.

    Args:
        name: its long name.
        letter: its short name, empty for none.
        kind: ``text``, ``text?`` for one whose value may be left out, ``int``, ``time``, ``memory``, ``flag``.
        choices: the only values; empty for no such limit.
        help: what it does; empty for an option that a form shows only where the script has it.
    """

    name: str
    letter: str = ""
    kind: str = "text"
    choices: tuple[str, ...] = ()
    help: str = ""

    def fault(self, value: str) -> str:
        """Check a value; return the fault, empty if there is none."""
        if self.kind == "time" and _TIME.fullmatch(value) is None:
            return f"`{value}` is not a time. Use 30, 1:30:00, 1-12 or 1-12:00:00"
        if self.kind == "memory" and _MEMORY.fullmatch(value) is None:
            return f"`{value}` is not a size. Use a number with K, M, G or T, such as 64G"
        return ""


def _read(line: str) -> SbatchOption:
    words, _, text = line.partition("|")
    name, letter, kind, choices = words.split()
    return SbatchOption(
        name, letter.strip("-"), kind, tuple(choices.split(",")) if choices != "-" else (), text.strip()
    )


OPTIONS = {option.name: option for option in map(_read, _TABLE.strip().splitlines())}
"""The options by their names, those of every form first."""
LETTERS = {option.letter: option for option in OPTIONS.values() if option.letter}
"""The options by their short names."""


# Options under another name.
_ALIASES = {"tasks-per-node": "ntasks-per-node"}


def find_option(name: str) -> SbatchOption | None:
    """Return the option with a long name or an unambiguous prefix of it, None if there is none."""
    if name in OPTIONS:
        return OPTIONS[name]
    begun = [*dict.fromkeys(_ALIASES.get(key, key) for key in (*OPTIONS, *_ALIASES) if name and key.startswith(name))]
    return OPTIONS[begun[0]] if len(begun) == 1 else None


DIRECTIVE = re.compile(r"^#SBATCH(?P<words>|\s.*)$")
"""A ``#SBATCH`` line of a script."""
HET = ("hetjob", "packjob")
"""The words that start the next component of a heterogeneous job."""


def directive_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbers of a script's `#SBATCH` lines, with their words, up to the first command.

    Later lines are comments for sbatch, too.
    """
    for number, line in enumerate(text.splitlines(), 1):
        if found := DIRECTIVE.match(line):
            if words := _split_words(found["words"]):
                yield number, words
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def script_options(text: str) -> dict[str, str]:
    """Return the options of a script, or of the first component of a heterogeneous job, by their long names."""
    found: dict[str, str] = {}
    for _, words in directive_lines(text):
        if words[0] in HET:
            break
        _merge(found, options_of(words))
    return found


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Return the options of one `#SBATCH` line, ignoring other words."""
    found, left = take_options(words)
    while left:
        more, left = take_options(left[1:])
        _merge(found, more)
    return found


def take_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Parse the leading options of a command; return them by their long names, and the remaining words.

    They are written as ``--name=value``, ``--name value``, ``-x value``, ``-xvalue`` or as flags, which are ``true``.
    """
    found: dict[str, str] = {}
    left = list(words)
    while left:
        word = left[0]
        if word.startswith("--"):
            key, sign, value = word[2:].partition("=")
            unknown = SbatchOption(key) if sign else SbatchOption(key, kind="flag")
            option, given = find_option(key) or unknown, value if sign else None
        elif word.startswith("-") and (letter := LETTERS.get(word[1:2])):
            option, given = letter, word[2:].removeprefix("=") or None
        else:
            break
        del left[0]
        if option.kind == "flag":
            given = "true"
        elif given is None:
            given = "yes" if option.kind == "text?" else left.pop(0) if left else ""
        _merge(found, {option.name: given})
    if "no-requeue" in found:
        del found["no-requeue"]
        found["requeue"] = "false"
    return found, left


def _merge(found: dict[str, str], more: Mapping[str, str]) -> None:
    """Add options. The last value wins, except for mail types, which sbatch accumulates."""
    before, now = found.get("mail-type"), more.get("mail-type")
    found.update(more)
    if before and now:
        found["mail-type"] = ",".join(dict.fromkeys([*before.split(","), *now.split(",")]))


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()
