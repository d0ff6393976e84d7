"""The sbatch command of a job, as accounting (from 21.08) and the controller (from 26.05) keep it.

Slurm joins the words with blanks and without quotes, so a word with a blank looks like several words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ...specs.sbatch_options import OPTIONS, take_options
from .jobs import Job

_WRAPPED = "# This script was created by sbatch --wrap.\n\n"
# Words with other characters may have been quoted, or expanded by the shell.
_PLAIN = re.compile(r"[\w./=:,+@%~-]+")
# Options that change what sbatch does, and options that the launch sets itself.
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
        options: the sbatch options of a relaunch by their long names; the value of a flag is ``true``.
        args: the arguments of the script.
        is_sure: whether no word can have been quoted.
    """

    options: Mapping[str, str]
    args: tuple[str, ...] = ()
    is_sure: bool = True


def option_words(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command line words of sbatch options, which are given by their long names."""
    return tuple(_word(name, value) for name, value in options.items())


def _word(name: str, value: str) -> str:
    if name == "requeue":
        return "--requeue" if value == "true" else "--no-requeue"
    option = OPTIONS.get(name)
    is_flag = value == "true" if option is None or option.kind == "flag" else option.kind == "text?" and value == "yes"
    return f"--{name}" if is_flag else f"--{name}={value}"


def submit_options(submit_line: str) -> dict[str, str]:
    """Return the options of a submit line by their long names, up to ``--wrap``."""
    return take_options(submit_line.partition(" --wrap")[0].split(" ")[1:])[0]


def read_submission(submit_line: str, job: Job, script: str) -> Submission | None:
    """Parse the submit line of a job; return None if it is missing or does not match the script.

    Args:
        submit_line: the submit line, empty if unknown.
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
    if (mark and rest) or not _is_script(rest[:1], options, job, is_wrapped=bool(mark)):
        return None
    args = tuple(rest[1:])
    again = {name: value for name, value in options.items() if name not in _NOT_AGAIN}
    return Submission(again, args, _are_sure(options, job) and not _may_be_quoted(args))


def _is_script(words: list[str], options: Mapping[str, str], job: Job, *, is_wrapped: bool) -> bool:
    """Return whether a word names the script, by the command in the job's record, else by the job's name.

    There is no word for a wrapped command and for a script from standard input.
    """
    if not words:
        return is_wrapped or not job.command
    name = PurePath(words[0]).name
    if job.command:
        return PurePath(job.command).name == name
    return name == job.name or "job-name" in options


def _are_sure(options: Mapping[str, str], job: Job) -> bool:
    """Return whether the options of free text have the values of the job's record, so that no value was split."""
    if options.get("export", "ALL") not in ("ALL", "NONE", "NIL"):
        return False
    recorded = {"comment": job.comment, "job-name": job.name}
    return all(options.get(name, value) == value for name, value in recorded.items())


def _may_be_quoted(args: Sequence[str]) -> bool:
    """Return whether some of the words may be one argument with blanks, or may have been expanded by the shell."""
    is_joined = any(not first.startswith("-") and not then.startswith("-") for first, then in itertools.pairwise(args))
    return is_joined or not all(map(_PLAIN.fullmatch, args))
