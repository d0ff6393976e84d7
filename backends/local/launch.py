"""Starts a supervisor and sends it its request."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.files import private_folder, read_file, user_name, write_private
from ...base.processes import is_own, user_of
from ...base.validation import decode_json, encode_json
from ...specs.errors import SchedulerError
from ...specs.handles import make_app_handle
from ...specs.roles import AppDef
from ...specs.serialize import appdef_to_dict
from . import supervisor
from .environment import JOB_ID, launcher_environment
from .record import Run
from .request import PopenRequest
from .runs import Runs

ANSWER_SECONDS = 60.0
"""Seconds to wait for the answer of a supervisor: 50 ms is usual, but a disk may take long to wake."""


def launch(
    runs: Runs,
    request: PopenRequest,
    app: AppDef,
    cfg: Mapping[str, Any],
    session: str,
    *,
    max_running: int = 0,
    grace_seconds: float = 10.0,
    helpers: Mapping[str, Mapping[str, Any]] | None = None,
    passes_stdin: bool = False,
) -> None:
    """Start an app; return when its supervisor has written state.json.

    Args:
        runs: the apps.
        request: what to start.
        app: the app that it was made from.
        cfg: the run options.
        session: the session part of handles.
        max_running: how many apps run at once; later ones wait. 0 is no limit.
        grace_seconds: how long it has between SIGTERM and SIGKILL when it is cancelled, in seconds.
        helpers: programs that its supervisor starts and leaves alone, see `LocalScheduler`.
        passes_stdin: the only replica reads this process's standard input.

    Raises:
        SchedulerError: nothing was started, and nothing is left behind; the message says why.
    """
    folder = Path(request.log_dir)
    env = launcher_environment()
    # Pass the terminal or pipe itself: copying its bytes would take input that the replica never reads.
    stdin = os.dup(0) if passes_stdin else None
    starting = _start_supervisor(env, stdin)  # start it while the folders are made
    try:
        _make_folders(runs, request)
        runs.write_record(request.app_id, folder)
    except OSError as error:
        _discard(starting)
        if not isinstance(error, FileExistsError):
            _remove(runs, request)
        raise SchedulerError(_refused(request, f"{error.strerror}: {error.filename}")) from error
    submitted_at = time.time()
    message: dict[str, Any] = {
        "adopt": False,
        "folder": str(folder),
        "turn": str(runs.turns / f"{int(submitted_at * 1e6):020d}-{request.app_id}"),
        "max_running": max_running,
        "grace": grace_seconds,
        "helpers": {moment: dict(helper) for moment, helper in (helpers or {}).items()},
        "state": _state(request, app, cfg, session, submitted_at, max_running),
        "replicas": [_replica(env, request, role, param) for role, _, param in request.replicas()],
        **({} if stdin is None else {"stdin": stdin}),
    }
    try:
        _send_request(starting, message)
    except TimeoutError as error:
        with suppress(OSError):
            write_cancel(folder, "")  # if it is alive after all, it ends before it starts anything
        raise SchedulerError(f"{request.app_id} was not launched: {error}") from error
    except SchedulerError as error:
        Path(str(message["turn"])).unlink(missing_ok=True)
        _remove(runs, request)
        if isinstance(error, _SupervisorDiedError):
            raise SchedulerError(f"{request.app_id} was not launched: {error}. Try again") from error
        raise SchedulerError(_refused(request, str(error))) from error


class _SupervisorDiedError(SchedulerError):
    """A supervisor ended at its start, whatever the folders are like."""


def end_unsupervised(run: Run, cancel: Mapping[str, Any], grace_seconds: float) -> None:
    """Start a supervisor that ends an app whose own was killed; do not wait for that end.

    Raises:
        SchedulerError: it could not be started.
    """
    message = {
        "adopt": True,
        "folder": str(run.folder),
        "grace": grace_seconds,
        "state": {**run.document, "cancel": dict(cancel)},
        "replicas": [],
    }
    try:
        _send_request(_start_supervisor(launcher_environment()), message)
    except (SchedulerError, TimeoutError) as error:
        raise SchedulerError(f"{run.app_id} cannot be cancelled: {error}") from error


def write_cancel(folder: Path, by: str) -> dict[str, Any]:
    """Write the request that the supervisor of the app in ``folder`` ends it, unless there is one; return it.

    Raises:
        OSError: it cannot be written.
    """
    path = folder / "cancel.json"
    try:
        if not is_own(path):
            raise FileNotFoundError(path)
        return decode_json(read_file(path))
    except (OSError, ValueError):
        asked = {"format": supervisor.FORMAT, "by": by, "host": os.uname().nodename, "at": time.time()}
        try:
            write_private(path, json.dumps(asked).encode())
        except OSError:
            # A full disk mostly has room for an empty file: the request without a name is better than none.
            with suppress(OSError):
                path.touch(mode=0o600)
            raise
        return asked


def _start_supervisor(env: Mapping[str, str], stdin: int | None = None) -> subprocess.Popen[bytes]:
    """Start a supervisor, which ends by itself if it never receives a request.

    Args:
        env: its environment.
        stdin: a descriptor that it inherits under this number; it is closed here.
    """
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=dict(env),
            start_new_session=True,
            pass_fds=() if stdin is None else (stdin,),
        )
    except OSError as error:
        raise SchedulerError(f"nothing was started: {sys.executable}: {error.strerror}") from error
    finally:
        if stdin is not None:
            os.close(stdin)


def _discard(starting: subprocess.Popen[bytes]) -> None:
    """Close the pipes to a supervisor; kill the process that was started, which exits as soon as it has forked."""
    for pipe in (starting.stdin, starting.stdout):
        if pipe:
            pipe.close()
    starting.kill()
    starting.wait()


def _send_request(starting: subprocess.Popen[bytes], request: Mapping[str, Any]) -> None:
    """Send a supervisor its request and wait for the answer.

    Raises:
        SchedulerError: it refused.
        _SupervisorDiedError: it died.
        TimeoutError: it did not take the request, or did not answer, within `ANSWER_SECONDS`.
    """
    try:
        answer, _ = starting.communicate(encode_json(request).encode(), ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the supervisor did not answer within {ANSWER_SECONDS:.0f} s") from None
    finally:
        _discard(starting)
    last = answer.decode("utf-8", "replace").strip().rpartition("\n")[2]
    try:
        decoded = json.loads(last)
    except ValueError:
        killed = "it was killed, for example because the memory is full"
        reason = last or (killed if starting.returncode < 0 else "it printed nothing")
        raise _SupervisorDiedError(f"the supervisor did not start: {reason}") from None
    if "error" in decoded:
        raise SchedulerError(decoded["error"])


def _make_folders(runs: Runs, request: PopenRequest) -> None:
    for folder in (runs.records, runs.turns):
        private_folder(folder)
    folder = Path(request.log_dir)
    session = private_folder(folder.parent)
    if not is_own(session):
        reason = f"it belongs to {user_of(session)}, who could replace the job's files"
        raise PermissionError(errno.EPERM, reason, str(session))
    folder.mkdir(mode=0o700)
    for role, folders in request.role_log_dirs.items():
        for path in (folder / role, *map(Path, folders)):
            private_folder(path)
    for path in request.insight_folders():
        private_folder(path)


def _remove(runs: Runs, request: PopenRequest) -> None:
    runs.forget(request.app_id)
    shutil.rmtree(request.log_dir, ignore_errors=True)


def _refused(request: PopenRequest, reason: str) -> str:
    advice = "Set XDG_STATE_HOME to another folder" if request.private else "Choose another log_dir"
    return f"{request.app_id} was not launched: {reason}. {advice}, or make this one usable"


def _state(
    request: PopenRequest, app: AppDef, cfg: Mapping[str, Any], session: str, submitted_at: float, max_running: int
) -> dict[str, Any]:
    """Return the first state file, without what the supervisor adds."""
    replicas = []
    job_id = ""
    for role, number, param in request.replicas():
        job_id = job_id or param.env.get(JOB_ID, "")
        if request.app_id not in job_id:
            job_id = make_app_handle("local_cwd", session, request.app_id)  # an id of others would end them with us
        # The program and folder are kept for the message about a failed start.
        known = {"role": role, "id": number, "command": param.args[0], "cwd": param.cwd}
        if (python := request.pythons.get(role)) is not None:
            known["python"] = python.sentence
        unknown = dict.fromkeys(("pid", "pid_started", "exit_code", "started_at", "finished_at"))
        error_file = param.env.get("TORCHELASTIC_ERROR_FILE")
        replicas.append({**known, **unknown, "error_file": error_file})
    return {
        "format": supervisor.FORMAT,
        "app_id": request.app_id,
        "session": session,
        "name": app.name,
        "user": user_name(),
        "job_id": job_id,
        "submitted_at": submitted_at,
        "started_at": None,
        "finished_at": None,
        "timeline": [],
        "cancel": None,
        "waits_for": [],
        "max_running": max_running,
        "notes": [],
        "log_dir": request.log_dir,
        "replicas": replicas,
        "app": appdef_to_dict(app, strict=False),
        "cfg": dict(cfg),
    }


def _replica(env: Mapping[str, str], request: PopenRequest, role: str, param: Any) -> dict[str, Any]:
    nowhere = os.devnull
    return {
        "args": param.args,
        "cwd": param.cwd,
        "env": request.started_environment(role, param, env),
        "stdout": param.stdout or nowhere,
        "stderr": param.stderr or nowhere,
        "combined": param.combined or nowhere,
    }
