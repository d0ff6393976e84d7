"""The sbatch command of a job as Slurm keeps it: accounting from 21.08 on, the controller too from 26.05 on.

Slurm joins the words by blanks and keeps no quotes: a word with a blank in it reads as several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from ...specs.sbatch_options import OPTIONS, take_options
from .jobs import Job

_WRAPPED = "# This script was created by sbatch --wrap.\n\n"
# A word with any other character may have been quoted, or worked out by the shell.
_PLAIN = re.compile(r"[\w./=:,+@%~-]+")
# They would make sbatch do something else than submit, or say what the launch says itself.
_NOT_AGAIN = (
    "parsable",
    "wrap",
    "wait",
    "test-only",
    "quiet",
    "verbose",
    "uid",
    "gid",
    "chdir",
    "job-name",
    "clusters",
)


@dataclass(frozen=True)
class Submission:
    """How a job was submitted.

    Args:
        options: the options of sbatch by their long names, those that a later submission may have; a flag is ``true``.
        args: the arguments of the script.
        is_sure: whether the words of the arguments are certain.
    """

    options: Mapping[str, str]
    args: tuple[str, ...] = ()
    is_sure: bool = True


def option_words(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return options of sbatch, by their long names, as they stand on a command line; a flag is ``true``."""
    return tuple(_word(name, value) for name, value in options.items())


def _word(name: str, value: str) -> str:
    if name == "requeue":
        return "--requeue" if value == "true" else "--no-requeue"
    option = OPTIONS.get(name)
    is_flag = value == "true" if option is None or option.kind == "flag" else option.kind == "text?" and value == "yes"
    return f"--{name}" if is_flag else f"--{name}={value}"


def submit_options(submit_line: str) -> dict[str, str]:
    """Return the options of a submit line by their long names, those before a wrapped command."""
    return take_options(submit_line.partition(" --wrap")[0].split(" ")[1:])[0]


def read_submission(submit_line: str, job: Job, script: str) -> Submission | None:
    """Return how a job was submitted; None where its submit line is missing or does not fit its script.

    Args:
        submit_line: the submit line, empty where it is not known.
        job: the job.
        script: its batch script.
    """
    _, mark, wrapped = script.partition(_WRAPPED)
    if mark:
        wrapped = wrapped.removesuffix("\n")
        for sign in ("=", " "):
            submit_line = submit_line.replace(f" --wrap{sign}{wrapped}", "", 1)
    if PurePath(submit_line.split(" ")[0]).name != "sbatch" or " --wrap" in submit_line:
        return None
    options, rest = take_options(submit_line.split(" ")[1:])
    if bool(rest) == bool(mark) or not _is_script(rest[:1], options, job):
        return None
    args = tuple(rest[1:])
    again = {name: value for name, value in options.items() if name not in _NOT_AGAIN}
    return Submission(again, args, all(map(_PLAIN.fullmatch, args)))


def _is_script(words: list[str], options: Mapping[str, str], job: Job) -> bool:
    """Tell whether a word is the script's, by the command that the controller knows, else by the job's name."""
    if not words:
        return True
    name = PurePath(words[0]).name
    if job.command:
        return PurePath(job.command).name == name
    return name == job.name or "job-name" in options
