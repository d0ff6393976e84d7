"""Slurm's commands as programs that print what a test gave them, first on the PATH; no Slurm is needed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from torchx_tui.backends.slurm import accounting, cluster, queue

FIELD, RECORD = "\x1f", "\x1e"
# What a program that nobody gave an answer prints is nothing. `scontrol show partition main` is answered by the file
# scontrol-show-partition-main, else scontrol-show-partition, and so on; options are passed over.
_PROGRAM = """#!/bin/sh
name=${0##*/}
case $1 in
--helpformat) exec cat "$FAKE_SLURM/$name.fields" ;; # it fails where there is none
--version) [ "$name" != scontrol ] || exec cat "$FAKE_SLURM/version" ;;
esac
# In one go each: others may run at the same time.
call=
for word in "$@"; do call="$call$word\037"; done
printf '%s\\n' "$call" >>"$FAKE_SLURM/$name.calls"
[ "$name" != sbatch ] || { cat >"$FAKE_SLURM/stdin.$$" && mv "$FAKE_SLURM/stdin.$$" "$FAKE_SLURM/sbatch.stdin"; }
best=$name
key=$name
for word in "$@"; do
    case $word in -*) continue ;; */*) word=$(printf %s "$word" | tr / _) ;; esac
    key=$key-$word
    [ ! -e "$FAKE_SLURM/$key.out" ] || best=$key
done
[ ! -s "$FAKE_SLURM/$best.sleep" ] || sleep "$(cat "$FAKE_SLURM/$best.sleep")"
[ ! -s "$FAKE_SLURM/$best.err" ] || cat "$FAKE_SLURM/$best.err" >&2
code=0
[ ! -s "$FAKE_SLURM/$best.code" ] || read -r code <"$FAKE_SLURM/$best.code"
[ ! -s "$FAKE_SLURM/$best.out" ] || cat "$FAKE_SLURM/$best.out"
exit "$code"
"""
NEWER = {
    "sacct": (
        ("21.08", "SubmitLine"), ("23.02", "FailedNode"), ("24.05", "StdOut"), ("24.05", "StdErr"),
        ("24.11", "Restarts"), ("24.11", "SLUID"),
    ),
    "squeue": (("26.05", "SLUID"),),
}  # fmt: skip
"""The fields that came after 20.11, with the versions that brought them, in the order in which they are asked for."""
PROGRAMS = ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo", "sstat", "srun", "sacctmgr", "sprio")
JOB: dict[str, str] = {
    "JobID": "7", "ArrayTaskID": "N/A", "HetJobID": "N/A", "HetJobOffset": "N/A", "Name": "train", "UserName": "alice",
    "State": "RUNNING", "Reason": "None", "SubmitTime": "1795258000", "EligibleTime": "1795258000",
    "StartTime": "1795258010", "EndTime": "N/A", "TimeLimit": "1:00:00", "Partition": "main", "QOS": "normal",
    "Account": "silver", "NumNodes": "1", "NumCPUs": "2", "NumTasks": "1", "NodeList": "n1", "SchedNodes": "(null)",
    "PriorityLong": "1000", "Dependency": "(null)", "WorkDir": "/home/alice", "Command": "/home/alice/train.sh",
    "Comment": "(null)", "STDOUT": "/home/alice/slurm-%j.out", "STDERR": "N/A", "RestartCnt": "0", "exit_code": "0",
    "MinMemory": "100M", "tres-alloc": "cpu=2,mem=200M,node=1,billing=2", "tres-per-node": "N/A", "Licenses": "(null)",
    "Feature": "(null)", "Reservation": "(null)", "BatchFlag": "1", "DerivedEC": "0",
}  # fmt: skip
"""What squeue prints of a job that runs."""
ACCOUNTED: dict[str, str] = {
    "JobIDRaw": "7", "JobName": "train", "User": "alice", "State": "COMPLETED", "ExitCode": "0:0",
    "DerivedExitCode": "0:0", "Reason": "None", "Submit": "1795258000", "Eligible": "1795258000",
    "Start": "1795258010", "End": "1795258110", "ElapsedRaw": "100", "TimelimitRaw": "60", "Partition": "main",
    "QOS": "normal", "Account": "silver", "NNodes": "1", "NCPUS": "2", "NodeList": "n1", "ReqMem": "200M",
    "AllocTRES": "billing=2,cpu=2,mem=200M,node=1", "WorkDir": "/home/alice",
}  # fmt: skip
"""What sacct prints of a job that has ended."""


class SlurmCommands:
    """The programs, and what they were called with.

    Args:
        folder: it is made.
        monkeypatch: takes back what is set in the environment.
        version: the version of Slurm that they are of.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "26.05") -> None:
        self._folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name in PROGRAMS:
            (programs / name).write_text(_PROGRAM)
            (programs / name).chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_SLURM", str(folder))
        self.answer("sbatch", "7\n")
        self.set_version(version)

    def set_version(self, version: str) -> None:
        """Let the programs be of a version of Slurm: what fields they print, and how files are named."""
        self._put("version", f"slurm {version}.5\n")
        self._more: dict[str, tuple[str, ...]] = {}
        for name in ("sacct", "squeue"):
            fields = _later_fields(name, version)
            self._more[name] = fields
            self._put(f"{name}.fields", f"JobID State {' '.join(fields)}\n")
        for name in ("sacct", "squeue", "scontrol"):
            # As after an upgrade: what the old program said is not remembered.
            (self._folder / "bin" / name).touch()

    def answer(self, name: str, out: str = "", *, err: str = "", code: int = 0, seconds: float = 0) -> None:
        """Let a program print something, in place of what it did.

        Args:
            name: the program, with words that it is called with behind it, such as ``scontrol-show-partition``.
            out: what it prints.
            err: what it prints on stderr.
            code: what it exits with.
            seconds: how long it waits before.
        """
        self._put(f"{name}.err", err)
        self._put(f"{name}.code", f"{code}\n")
        self._put(f"{name}.sleep", str(seconds or ""))
        self._put(f"{name}.out", out)

    def refuse_help(self, name: str) -> None:
        """Let a program not know the option that lists its fields."""
        (self._folder / f"{name}.fields").unlink()
        self._more[name] = ()

    def remove(self, name: str) -> None:
        """Take a program off the PATH."""
        (self._folder / "bin" / name).unlink()

    def _put(self, name: str, text: str) -> None:
        """Write a file as a whole: a program that runs meanwhile prints what was there before, or this."""
        written = self._folder / "next"
        written.write_bytes(text.encode("utf-8", "surrogateescape"))
        written.replace(self._folder / name)

    def queue(self, *jobs: dict[str, str]) -> None:
        """Let squeue print jobs, each by what differs from `JOB`."""
        self.answer("squeue", "".join(queue_record(job, self._more["squeue"]) for job in jobs))

    def accounted(self, *rows: dict[str, str]) -> None:
        """Let sacct print rows, each by what differs from `ACCOUNTED`."""
        self.answer("sacct", "".join(accounting_row(row, self._more["sacct"]) for row in rows))

    def nodes(self, *rows: dict[str, str], partition: str = "") -> None:
        """Let sinfo print nodes, by its fields: whatever it is asked, or of one partition."""
        usual = {"Partition": "main", "Gres": "(null)", "GresUsed": "gpu:0", "Memory": "4000", "AllocMem": "0"}
        usual["Reason"] = "none"
        names = cluster.NODE_FIELDS
        text = "".join(FIELD.join({**usual, **row}[name] for name in names) + RECORD + "\n" for row in rows)
        self.answer(f"sinfo-{partition}" if partition else "sinfo", text)

    def calls(self, name: str, word: str = "") -> list[list[str]]:
        """Return what a program was called with, each time, or each time that a word was among it."""
        try:
            text = (self._folder / f"{name}.calls").read_text(errors="surrogateescape")
        except FileNotFoundError:
            return []
        calls = [line.split(FIELD)[:-1] for line in text.split("\n") if line]
        return [call for call in calls if not word or word in call]

    @property
    def comment(self) -> str:
        """The comment of the last launch."""
        (option,) = (option for option in self.calls("sbatch")[-1] if option.startswith("--comment="))
        return option.partition("=")[2]

    @property
    def script(self) -> str:
        """What sbatch read last."""
        return (self._folder / "sbatch.stdin").read_text()


def _later_fields(program: str, version: str = "99") -> tuple[str, ...]:
    return tuple(field for since, field in NEWER[program] if since <= version)


QUEUE_HEAD = ",".join((*queue.FIELDS, *_later_fields("squeue"))) + RECORD
"""What stands before the newest version's records in an answer."""


def queue_record(job: dict[str, Any], more: Sequence[str] = _later_fields("squeue")) -> str:
    """Return what squeue prints of a job, by what differs from `JOB`, with the fields of later versions."""
    values = {**JOB, **job}
    values.setdefault("ArrayJobID", values["JobID"])
    return FIELD.join(values.get(name, "") for name in (*queue.FIELDS, *more)) + RECORD + "\n"


def accounting_row(row: dict[str, Any], more: Sequence[str] = _later_fields("sacct")) -> str:
    """Return what sacct prints of a job or a step, by what differs from `ACCOUNTED`, with those fields likewise."""
    values = {**ACCOUNTED, **row}
    values.setdefault("JobID", values["JobIDRaw"])
    return "".join(values.get(name, "") + FIELD for name in (*accounting.FIELDS, *more)) + "\n"
