"""The sbatch command of a job, as accounting (from 21.08) and the controller (from 26.05) keep it.

Slurm joins the words with blanks and without quotes, so a word with a blank looks like several words.
"""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import PurePath
from typing import Any, NamedTuple

from ...specs.batch_script import BatchScript
from ...specs.roles import Role
from ...specs.sbatch_options import OPTIONS, script_options, take_options
from .jobs import Job
from .options import SlurmOpts
from .request import without_key

_WRAPPED = "# This script was created by sbatch --wrap.\n\n"
# Words with other characters may have been quoted, or expanded by the shell.
_PLAIN = re.compile(r"[\w./=:,+@%~-]+")
# Options that change what sbatch does, and options that the launch sets itself.
_NOT_AGAIN = ("parsable", "wait", "test-only", "quiet", "verbose", "uid", "gid", "chdir", "job-name", "clusters")


class RelaunchPlan(NamedTuple):
    """The launch that repeats a job.

    Attributes:
        roles: its roles.
        cfg: its run options.
        not_known: see `DescribeAppResponse.not_known`.
    """

    roles: list[Role]
    cfg: dict[str, Any]
    not_known: dict[str, str]


def submit_options(submit_line: str) -> dict[str, str]:
    """Return the options of a submit line by their long names, up to ``--wrap``."""
    return take_options(submit_line.partition(" --wrap")[0].split(" ")[1:])[0]


def plan_relaunch(job: Job, script: str, submit_line: str) -> RelaunchPlan | None:
    """Return the launch that repeats a job's sbatch command with its script; None if either is unknown.

    Args:
        job: the job.
        script: its batch script, empty if unknown.
        submit_line: its sbatch command, empty if unknown.
    """
    _, mark, wrapped = script.partition(_WRAPPED)
    if mark:
        wrapped = wrapped.removesuffix("\n")
        for sign in ("=", " "):
            submit_line = submit_line.replace(f" --wrap{sign}{wrapped}", "", 1)
    # The name may have blanks; the job has it.
    submit_line, named = re.subn(rf" (?:--job-name[= ]|-J ?){re.escape(job.name)}(?= |$)", "", submit_line, count=1)
    program, *words = submit_line.split(" ")
    options, rest = take_options(words)
    if not script or PurePath(program).name != "sbatch" or "wrap" in options:
        return None
    if mark or not rest:
        # A wrapped command and a script from standard input have no name.
        is_same = not rest and (mark or not job.command)
    else:
        # A word of an option with blanks is not the script. The job has the script's name, unless another was given.
        is_named = named or "job-name" in {**script_options(script), **options}
        name = job.command or ("" if is_named else job.name)
        is_same = not name or PurePath(rest[0]).name == PurePath(name).name
    if not is_same:
        return None
    options = {name: value for name, value in options.items() if name not in _NOT_AGAIN}
    command, args = [*_words(options), "SCRIPT", *rest[1:]], tuple(rest[1:])
    cfg: dict[str, Any] = {"job_dir": job.work_dir} if job.work_dir else {}
    for name in SlurmOpts().keys() & options.keys():
        value = options.pop(name)
        cfg[name] = value == "true" if name == "requeue" else without_key(value) if name == "comment" else value
    role = BatchScript(script, _words({"job-name": job.name, **options}), args).role()
    quotes = {"the quotes in its sbatch command": shlex.join(("sbatch", *command))} if _may_be_quoted(args) else {}
    return RelaunchPlan([role], cfg, quotes)


def _words(options: dict[str, str]) -> tuple[str, ...]:
    """Return the command line words of options, which are given by their long names."""
    return tuple(_word(name, value) for name, value in options.items())


def _word(name: str, value: str) -> str:
    if name == "requeue":
        return "--requeue" if value == "true" else "--no-requeue"
    kind = OPTIONS[name].kind if name in OPTIONS else "flag"
    is_flag = (kind, value) in (("flag", "true"), ("text?", "yes"))
    return f"--{name}" if is_flag else f"--{name}={value}"


def _may_be_quoted(args: tuple[str, ...]) -> bool:
    """Return whether some of the words may be one argument with blanks, or may have been expanded by the shell."""
    is_joined = any(not first.startswith("-") and not then.startswith("-") for first, then in itertools.pairwise(args))
    return is_joined or not all(map(_PLAIN.fullmatch, args))
