"""The batch script: one ``srun`` a role, whose tasks are its replicas.

Values reach the replicas as they are. The script exports what is the same for all replicas of a role. What differs
stands in one variable as a program of the shell, which each task evaluates: no command line has any value of the
environment, and sbatch reads the script from its standard input. Texts are quoted for the shell; macros become
variables between the quotes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.validation import decode_json
from ...specs.errors import AppDefError
from ...specs.roles import Role, macros
from ..shared.insight import insight_exports
from ..shared.kept_app_def import RANK0_HOST

MARK = "# torchx-tui: "
"""What the line begins with that has the launch, as JSON."""
_TASK = "TORCHX_TUI_TASK"
_APP_ID = "TORCHX_TUI_APP_ID"
# Linux takes 128 KiB for one variable.
_MAX_TASK_BYTES = 120_000
# Stand for macros until the text is quoted: code points that no text of a component has.
_APP_MARK, _REPLICA_MARK, _PLACEHOLDER = "\U0010fffe", "\U0010ffff", re.compile("([\U0010fffe\U0010ffff])")


@dataclass(frozen=True)
class Part:
    """A role as it runs.

    Args:
        role: the role, its macros not replaced.
        component: the number of its component of the heterogeneous job.
        exact: whether its step takes what it asks for only, since others run beside it.
    """

    role: Role
    component: int
    exact: bool


def write_script(
    parts: Sequence[Part], launch: Mapping[str, Any], *, is_array: bool, is_het: bool, insight: Path | None
) -> str:
    """Return the batch script.

    Args:
        parts: the roles.
        launch: the launch, for later sessions.
        is_array: whether the replicas are the tasks of an array.
        is_het: whether the job has several components.
        insight: the folder in which each job gets one for sockets and dumps of its ranks; None for none.

    Raises:
        AppDefError: a role is too large for a variable of the environment.
    """
    retries = min(part.role.max_retries for part in parts)
    lines = [
        "#!/bin/bash",
        MARK + json.dumps(launch),
        "",
        'srun=$(command -v srun) || { echo "srun is not on the PATH of this node" >&2; exit 127; }',
        f'export {_APP_ID}="${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}"',
        f'export {RANK0_HOST}="$(hostname)"',
        'export PYTHONUNBUFFERED="${PYTHONUNBUFFERED-1}"',
        f"export TORCHX_MAX_RETRIES={retries}",
    ]
    for part in parts:
        lines += ["", f"# {_comment(part.role.name)}", "(", *_role_lines(part, is_array, is_het, insight), ") &"]
    lines += ["", *_ending(len(parts), retries)]
    return "\n".join(lines) + "\n"


def launch_in(script: str) -> dict[str, Any] | None:
    """Return the launch that `write_script` put into a script; None for another script."""
    for line in script.splitlines()[:10]:
        if line.startswith(MARK):
            try:
                launch = decode_json(line.removeprefix(MARK))
            except ValueError:
                return None
            return launch if isinstance(launch, dict) else None
    return None


def _role_lines(part: Part, is_array: bool, is_het: bool, insight: Path | None) -> Iterable[str]:
    values = macros.Values(part.role.image, _APP_MARK, _REPLICA_MARK, rank0_env=RANK0_HOST)
    role = values.apply(part.role)
    per_replica = {name: value for name, value in role.env.items() if _REPLICA_MARK in value}
    replica = "$SLURM_ARRAY_TASK_ID" if is_array else "$SLURM_PROCID"
    for name, value in role.env.items():
        if name not in per_replica:
            yield f"export {name}={_quoted(value, replica)}"
    if insight is not None:
        yield from insight_exports(f'{shlex.quote(str(insight))}/"${_APP_ID}"/{shlex.quote(part.role.name)}')
    command = " ".join(_quoted(text, replica) for text in (role.entrypoint, *role.args))
    exports = "".join(f"export {name}={_quoted(value, replica)}\n" for name, value in per_replica.items())
    task = f"unset {_TASK}\n{exports}exec {command}"
    if len(task.encode("utf-8", "surrogateescape")) > _MAX_TASK_BYTES:
        raise AppDefError(
            f"role {role.name}: its arguments have more than {_MAX_TASK_BYTES // 1000} kB: put them into a file"
        )
    yield f"export {_TASK}={shlex.quote(task)}"
    yield f"exec {_srun(part, is_array, is_het)}"


def _srun(part: Part, is_array: bool, is_het: bool) -> str:
    """Return the command that starts a role's replicas; each writes files of its own, on its node."""
    role, number = part.role, '"$SLURM_ARRAY_TASK_ID"' if is_array else "%t"
    files, start = f'slurm-"${_APP_ID}"-{shlex.quote(role.name)}-', f'eval "${_TASK}"'
    outputs = [f"--output={files}{number}.out", f"--error={files}{number}.err", "--open-mode=append"]
    if is_het:
        # There %t is another number from 24.11 on.
        name, outputs = f'{files}"$SLURM_PROCID"', []
        start = f"exec >>{name}.out 2>>{name}.err; {start}"
    options = [
        f'"$srun" --job-name={shlex.quote(role.name)}',
        f"--het-group={part.component}" if is_het else "",
        f"--ntasks={role.num_replicas}",
        f"--cpus-per-task={role.resource.cpu}" if role.resource.cpu > 0 else "",
        "--exact" if part.exact else "",
        *outputs,
        "--kill-on-bad-exit=1 --wait=0",
    ]
    return f"{' '.join(filter(None, options))} \\\n    /bin/sh -c {shlex.quote(start)}"


def _ending(roles: int, retries: int) -> list[str]:
    """Return the lines that wait for the roles: the first failure ends the other roles and requeues the job."""
    lines = [
        "code=0",
        f"for _ in {' '.join(str(number) for number in range(roles))}; do",
        "    wait -n || { code=$?; break; }",
        "done",
        'if [ "$code" -ne 0 ]; then',
        "    kill $(jobs -p) 2>/dev/null",
        "    wait",
    ]
    if retries:
        lines += [
            f'    if [ "${{SLURM_RESTART_COUNT:-0}}" -lt {retries} ]; then',
            '        scontrol requeue "$SLURM_JOB_ID"',
            "    fi",
        ]
    return [*lines, "fi", 'exit "$code"']


def _quoted(text: str, replica: str) -> str:
    """Quote a text for the shell, with variables in the places of the marks."""
    variables = {_APP_MARK: f'"${_APP_ID}"', _REPLICA_MARK: f'"{replica}"'}
    pieces = (variables.get(piece) or shlex.quote(piece) for piece in _PLACEHOLDER.split(text) if piece)
    return "".join(pieces) or "''"


def _comment(name: str) -> str:
    return name if name.isprintable() else repr(name)
