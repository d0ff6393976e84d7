"""The run options: TorchX's, further options of sbatch by name, and all others as ``sbatch_args``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...specs.errors import InvalidRunConfigException
from ..options import StructuredOpts

_OPTION = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?:=(?P<value>.*))?", re.DOTALL)
# The run options that go to sbatch as they are.
_NAMED = (
    "account", "partition", "time", "constraint", "mail-user", "mail-type", "qos", "gres", "reservation", "nodelist",
    "exclude", "dependency", "begin", "array", "signal",
)  # fmt: skip
# What the request itself says, and what would make sbatch do something else than submit.
_OURS = {
    **dict.fromkeys((*_NAMED, "comment", "nodes", "requeue", "no-requeue"), "it is a run option of its own"),
    "chdir": "set job_dir",
    "job-name": "it is the app's name",
    **dict.fromkeys(("ntasks", "cpus-per-task", "mem-per-cpu", "gpus-per-task"), "the roles say it"),
    **dict.fromkeys(
        (
            "output", "error", "open-mode", "parsable", "wrap", "wait", "test-only", "quiet", "help", "version",
            "usage", "clusters", "export", "export-file", "uid", "gid",
        ),
        "the launch itself needs it to be as it is",
    ),
}  # fmt: skip


@dataclass
class SlurmOpts(StructuredOpts):
    """Options of sbatch(1). Those up to ``job_dir`` are TorchX's."""

    account: str | None = None
    """The account to use for the slurm job."""

    partition: str | None = None
    """The partition to run the job in."""

    time: str | None = None
    """The maximum time the job is allowed to run for: "minutes", "minutes:seconds", "hours:minutes:seconds",
    "days-hours", "days-hours:minutes" and "days-hours:minutes:seconds"."""

    comment: str | None = None
    """Comment to set on the slurm job."""

    constraint: str | None = None
    """Constraint to use for the slurm job: features that its nodes must have."""

    mail_user: str | None = field(default=None, metadata={"cfg_key": "mail-user"})
    """User to mail when the job begins, ends, or fails."""

    mail_type: str | None = field(default=None, metadata={"cfg_key": "mail-type"})
    """What events to mail users on: BEGIN, END, FAIL, ALL and others."""

    job_dir: str | None = None
    """The folder to run in and to write logs to, which all nodes must see. A workspace is copied into it, and it must
    not exist then. The current folder if not set."""

    qos: str | None = None
    """Quality of Service (QoS) to assign to the job."""

    nodes: str | None = None
    """How many nodes to run on, "4" or "2-4"; as many as the replicas need if not set."""

    gres: str | None = None
    """Generic resources of each node, such as "gpu:a100:4"."""

    reservation: str | None = None
    """The reservation to take the resources from."""

    nodelist: str | None = None
    """Nodes that the job must have, such as "gpu[01-04]"."""

    exclude: str | None = None
    """Nodes that the job must not have."""

    dependency: str | None = None
    """Jobs to wait for, such as "afterok:123"."""

    begin: str | None = None
    """The earliest start, such as "now+2hours" and "2026-11-24T18:00"."""

    array: str | None = None
    """Numbers of tasks of an array, such as "0-19%2": the one replica of the one role is run once for each, and
    ${replica_id} is the number."""

    signal: str | None = None
    """The signal to send before the time limit, "[B:]SIGNAL[@SECONDS]"."""

    requeue: bool = True
    """Run the job again from its beginning after a node failed, or a better job took its nodes."""

    sbatch_args: list[str] | None = None
    """Any other options of sbatch, each as "--name=value" or "--name"."""

    def command_options(self) -> Iterator[str]:
        """Yield the options of sbatch that each component of the job gets.

        Raises:
            InvalidRunConfigException: an option of ``sbatch_args`` cannot be given there.
        """
        for name in _NAMED:
            if value := getattr(self, name.replace("-", "_")):
                yield f"--{name}={value}"
        for text in self.sbatch_args or ():
            yield self._checked(text)

    def _checked(self, text: str) -> str:
        found = _OPTION.fullmatch(text)
        if found is None or "\0" in text:
            reason = "each must be --name=value or --name"
        elif reason := _OURS.get(found["name"], ""):
            reason = f"--{found['name']} cannot be given there: {reason}"
        if reason:
            raise InvalidRunConfigException(f"sbatch_args has {text!r:.80}: {reason}", "sbatch_args", dict(self))
        return text
