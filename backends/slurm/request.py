"""The request: the options and the script that sbatch is given, its text for people, and what would go wrong."""

from __future__ import annotations

import copy
import re
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ...base.files import current_folder, is_folder
from ...specs.batch_script import BatchScript, script_of
from ...specs.errors import AppDefError
from ...specs.roles import AppDef, Role
from ..api import check_launchable
from ..shared.kept_app_def import kept_text
from ..shared.secrets import MASK, mask_args, mask_env, mask_text
from ..types import Finding, NameFault
from ..workspace.scripts import script_findings
from .options import SlurmOpts
from .script import Part, write_script

_MAX_NAME_BYTES = 150
# The script travels with the request, and a site may refuse one of more than 4 MB (slurm.conf(5): max_script_size).
_MAX_KEPT_BYTES = 1 << 20
_Shape: TypeAlias = tuple[int, int, int]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENT_MARK = "torchx-tui:"
_KEY = re.compile(rf"{_COMMENT_MARK}(?P<key>[0-9a-f]{{16}})\b")


@dataclass
class SlurmRequest:
    """A submission.

    Args:
        command: the command, whose standard input is the script.
        script: the batch script.
        launch: the launch, for later sessions.
        shown: the script for people, secret values masked.
        env: variables of the environment that it is submitted with, beside this process's, which the job gets.
    """

    command: list[str]
    script: str
    launch: dict[str, Any]
    shown: str
    env: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        command = " ".join(shlex.quote(word) if word != ":" else ":" for word in mask_args(self.command))
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in mask_env(self.env).items())
        return f"{variables}{command} <<'SCRIPT'\n{self.shown}SCRIPT\n"


def make_request(
    app: AppDef,
    session: str,
    opts: SlurmOpts,
    tracks_memory: Callable[[str | None], bool],
    insight: Path | None = None,
) -> SlurmRequest:
    """Return the request for an app.

    Args:
        app: the app, checked by `check_app`.
        session: the session part of its handle.
        opts: the run options.
        tracks_memory: returns whether the nodes of a partition have a known size of memory; none is asked for if not.
        insight: see `write_script`.

    Raises:
        AppDefError: the app cannot be run so.
        InvalidRunConfigException: an option of ``sbatch_args`` cannot be given there.
    """
    folder = Path(opts.job_dir).expanduser().absolute() if opts.job_dir else current_folder()
    if folder is None:
        raise AppDefError("the current folder was removed: set job_dir, or start in another folder")
    key, own = secrets.token_hex(8), script_of(app.roles)
    kept, left_out = kept_text(app, _MAX_KEPT_BYTES)
    launch = {
        "version": 1, "key": key, "name": app.name, "session": session, "app": kept, "left_out": left_out,
        "cfg": dict(opts), "folder": str(folder),
    }  # fmt: skip
    if own is not None:
        launch |= {"array": False, "script": True, "roles": [[app.roles[0].name, 1, 0]]}
        return SlurmRequest(
            [*_script_command(key, opts, folder, own)], own.text, launch, masked_script(own.text), own.env
        )
    if opts.array and (len(app.roles) > 1 or app.roles[0].num_replicas > 1):
        raise AppDefError("an array runs one role of one replica, once for each task: leave `array` out")
    # Roles that differ in resources are components, with nodes of their own.
    components: dict[_Shape, list[Role]] = {}
    for role in app.roles:
        shape = role.resource.cpu, role.resource.gpu, role.resource.memMB
        components.setdefault(shape, []).append(role)
    of_role = {
        role.name: Part(role, number, len(roles) > 1)
        for number, roles in enumerate(components.values())
        for role in roles
    }
    parts = [of_role[role.name] for role in app.roles]
    launch |= {
        "array": bool(opts.array), "insight": str(insight or ""),
        "roles": [[part.role.name, part.role.num_replicas, part.component] for part in parts],
    }  # fmt: skip
    how: dict[str, Any] = {"is_array": bool(opts.array), "is_het": len(components) > 1, "insight": insight}
    masked = [replace(part, role=_masked(part.role)) for part in parts]
    command = [*_command(app, key, folder, opts, components, tracks_memory)]
    shown = write_script(masked, {"key": key, "app": MASK}, **how)
    return SlurmRequest(command, write_script(parts, launch, **how), launch, shown)


def _script_command(key: str, opts: SlurmOpts, folder: Path, own: BatchScript) -> Iterator[str]:
    """Yield the command for a script of the user's: it stays as it is, and options beside it win over its own."""
    yield from ("sbatch", "--parsable", *own.options)
    # Of several comments the last one counts.
    if opts.comment or not own.settings.get("comment"):
        yield f"--comment={_comment(opts, key)}"
    # Elsewhere it runs where sbatch was called, or where the script says.
    if opts.job_dir:
        yield f"--chdir={folder}"
    if not opts.requeue:
        yield "--no-requeue"
    yield from opts.command_options()
    if opts.nodes:
        yield f"--nodes={opts.nodes}"
    # A script on the standard input has no name, and sbatch takes arguments behind one only.
    if own.args:
        yield from ("/dev/stdin", *own.args)


def masked_script(script: str) -> str:
    """Return a user's script with its secret values masked, and continued lines joined for that."""
    return mask_text("", re.sub(r"\\\n\s*", "", script))


def _comment(opts: SlurmOpts, key: str) -> str:
    """Return the comment of a job: the user's as it is, since sites charge by it, else the key of the launch."""
    return opts.comment or f"{_COMMENT_MARK}{key}"


def key_in(comment: str) -> str:
    """Return the key of a launch of ours in the comment of a job; empty for another job."""
    found = _KEY.search(comment)
    return found["key"] if found else ""


def without_key(comment: str) -> str:
    """Return the comment that the user gave a job; earlier versions put a key behind it."""
    return _KEY.sub("", comment).strip()


def _command(
    app: AppDef,
    key: str,
    folder: Path,
    opts: SlurmOpts,
    components: Mapping[_Shape, Sequence[Role]],
    tracks_memory: Callable[[str | None], bool],
) -> Iterator[str]:
    """Yield the command. Components of a heterogeneous job are separated by a colon, and inherit little."""
    yield from ("sbatch", "--parsable")
    with_memory = any(memory > 0 for _, _, memory in components) and tracks_memory(opts.partition)
    requeue = opts.requeue or any(role.max_retries for role in app.roles)
    common = ["--requeue" if requeue else "--no-requeue", *opts.command_options()]
    output = "slurm-%A_%a.out" if opts.array else "slurm-%j.out"
    for number, ((cpu, gpu, memory), roles) in enumerate(components.items()):
        if number:
            yield ":"
        yield from (f"--job-name={app.name}", f"--comment={_comment(opts, key)}", f"--chdir={folder}")
        tasks = sum(role.num_replicas for role in roles)
        yield from (f"--output={output}", "--open-mode=append", f"--ntasks={tasks}")
        if opts.nodes and len(components) == 1:
            yield f"--nodes={opts.nodes}"
        if cpu > 0:
            yield f"--cpus-per-task={cpu}"
        if memory > 0 and with_memory:
            # Slurm has no memory of a task: however tasks are spread, this gives each its own.
            yield f"--mem-per-cpu={-(-memory // max(1, cpu))}M"
        if gpu > 0:
            yield f"--gpus-per-task={gpu}"
        yield from common


def _masked(role: Role) -> Role:
    masked = copy.deepcopy(role)
    masked.env = mask_env(role.env)
    masked.entrypoint, *masked.args = mask_args([role.entrypoint, *role.args])
    return masked


def check_app(app: AppDef) -> None:
    """Refuse an app that cannot run on Slurm.

    Raises:
        AppDefError: a name cannot be that of a file, or a variable's name is none of a shell.
    """
    check_launchable(app)
    for fault in name_faults(app):
        raise AppDefError(f"{fault.what} is {mask_text('', repr(fault.name))}: {fault.words}")
    for role in app.roles:
        for text in (role.entrypoint, *role.args, *role.env, *role.env.values()):
            if not isinstance(text, str):
                raise AppDefError(f"role {role.name}: {text!r} in its arguments or environment is not text")
            if "\0" in text:
                raise AppDefError(f"role {role.name}: an argument or variable has a NUL character: remove it")
        for name in role.env:
            if _VARIABLE.fullmatch(name) is None:
                raise AppDefError(
                    f"role {role.name}: {name!r} cannot be exported by a shell: use letters, digits and _ in its name"
                )


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that cannot be those of a job and its log files."""
    if not app.name or not app.name.isprintable() or len(app.name.encode()) > _MAX_NAME_BYTES:
        yield NameFault(
            "", app.name, "it becomes the job's name", f"it can have 1 to {_MAX_NAME_BYTES} printable characters"
        )
    names = [role.name for role in app.roles]
    for number, name in enumerate(names):
        reason, allowed = "it becomes a part of the names of log files", ""
        if not name or not name.isprintable() or {*"/%\\"} & {*name}:
            allowed = "it can have no slash, % or backslash, and must be printable"
        elif len(name.encode()) > _MAX_NAME_BYTES:
            allowed = f"it can have up to {_MAX_NAME_BYTES} bytes"
        elif name in names[:number]:
            reason, allowed = f"{app.name} has two roles {name}", "rename one of them"
        if allowed:
            yield NameFault(name, name, reason, allowed)


def launch_findings(app: AppDef, opts: SlurmOpts) -> Iterator[Finding]:
    """Yield what would go wrong with a launch that sbatch accepts."""
    folder = Path(opts.job_dir).expanduser() if opts.job_dir else current_folder()
    if folder is None or not is_folder(folder):
        if not any(role.workspace for role in app.roles):
            # Slurm notices it on the node only, and the job has no log then.
            yield Finding("error", f"the folder {folder} does not exist", "create it, or set job_dir to another one")
    else:
        for role in app.roles:
            yield from script_findings(role.name, [role.entrypoint, *role.args], str(folder))
    for role in app.roles:
        for given, what, hint in (
            (role.mounts, "its mounts are ignored", "Slurm's jobs see what their nodes see"),
            (role.port_map, "its ports are not published", "its nodes are reached by their names"),
            (role.resource.devices, "its devices are ignored", "ask for them with gres"),
        ):
            if given:
                yield Finding("warning", f"{role.name}: {what}", hint)
