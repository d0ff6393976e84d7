"""Relaunch of jobs that were not launched here, from their batch script and their sbatch command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...specs.batch_script import BatchScript
from ...specs.roles import Role
from .jobs import App, Job
from .options import SlurmOpts
from .request import without_key
from .submit_line import option_words, read_submission


@dataclass(frozen=True)
class RelaunchPlan:
    """The launch that repeats a job.

    Args:
        roles: its roles; empty if its batch script is unknown.
        cfg: its run options.
        not_known: unknown parts of the original launch, with the values used instead.
    """

    roles: Sequence[Role] = ()
    cfg: Mapping[str, Any] = field(default_factory=dict)
    not_known: Mapping[str, str] = field(default_factory=dict)


def plan_relaunch(app: App, script: str, submit_line: str) -> RelaunchPlan:
    """Return the launch that repeats a job: its script as it is, with the options of its sbatch command.

    Args:
        app: the job.
        script: its batch script, empty if unknown.
        submit_line: its sbatch command, empty if unknown.
    """
    job = app.first
    folder = {"job_dir": job.work_dir} if job.work_dir else {}
    found = read_submission(submit_line, job, script) if script else None
    if found is not None:
        options, cfg = dict(found.options), dict[str, Any](folder)
        for name in SlurmOpts().keys() & options.keys():
            value = options.pop(name)
            cfg[name] = value == "true" if name == "requeue" else without_key(value) if name == "comment" else value
        words = option_words({"job-name": job.name, **options})
        command = shlex.join(("sbatch", *option_words(found.options), "SCRIPT", *found.args))
        not_known = {} if found.is_sure else {"the quotes in its sbatch command": command}
        return RelaunchPlan([BatchScript(script, words, found.args).role()], cfg, not_known)
    recorded = _recorded(job, "account", "qos", "partition", "constraint", "reservation", "time")
    if not script or (len(app.jobs) > 1 and not app.is_array):
        # The options of the other components are unknown.
        return RelaunchPlan(cfg={**recorded, **folder})
    options = _recorded(job, "job-name", "nodes", "ntasks", "licenses", "gres")
    if app.is_array:
        options["array"] = ",".join(map(str, sorted(number for task in app.jobs for number in task.task_numbers())))
    words = option_words(options)
    whole = f" in `{submit_line}`" if submit_line else ""
    not_known = {
        f"the arguments of its script{whole}": "none",
        "the options of its sbatch command": " ".join(option_words({**options, **recorded})),
        "its other options, such as memory and output": "as in the script",
    }
    return RelaunchPlan([BatchScript(script, words).role()], {**recorded, **folder}, not_known)


def _recorded(job: Job, *names: str) -> dict[str, str]:
    """Return the sbatch options that the record of a job contains."""
    # Such as `gres:gpu:2`, and `gres/gpu:2` from 24.11 on.
    gres = [text[5:] for text in job.tres_per_node.split(",") if text[:5] in ("gres:", "gres/")]
    values = {
        "account": job.account,
        "qos": job.qos,
        "partition": job.partition,
        "constraint": job.features,
        "reservation": job.reservation,
        "time": f"{job.limit // 60}:{job.limit % 60:02d}" if job.limit else "",
        "job-name": job.name,
        "nodes": str(job.nodes or ""),
        "ntasks": str(job.ntasks or ""),
        "licenses": job.licenses,
        "gres": ",".join(gres),
    }
    return {name: values[name] for name in names if values[name]}
