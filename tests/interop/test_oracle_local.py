"""How local replicas are started compared with TorchX: arguments, environment, folders, files and GPUs."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.app_defs import apps
from interop.apps import pinned
from interop.oracle import WORDS, Refused, cases, check_example, compare, each_difference, theirs
from interop.plain_data import built

import torchx_tui.specs as our_specs
from torchx_tui.backends.local import environment, request, scheduler

AREA = "local replicas"
INTERPRETER = str(Path(sys.executable).parent)
APPS = apps(
    ["job", "My_Job.v1", "a b", "é", "a/b", "..", "x" * 250],
    ["trainer", "ps", "r-1", "R_x", "a/b", "", "."],
    ["sh", "/bin/sh", "./run", "bin/${replica_id}"],
    env=st.dictionaries(
        st.sampled_from(WORDS[AREA]["variables"]),
        st.sampled_from([*WORDS[AREA]["folders"], "1", "${app_id}"]),
        max_size=3,
    ),
)
CFGS = st.fixed_dictionaries(
    {"log_dir": st.just("/logs")},
    optional={"prepend_cwd": st.booleans(), "auto_set_cuda_visible_devices": st.booleans()},
)
INHERITED = st.sampled_from([f"/usr/bin:{INTERPRETER}", "/usr/bin:/bin", ":/usr/bin:", "", None])
EXTRA_PATHS = st.sampled_from([None, ["/extra"], ["/extra:", "/more"], ["/e/${replica_id}"]])
OTHERS = {"PYTHONUNBUFFERED": "1", "TORCHX_JOB_ID": "local_cwd://torchx/outer", "A": "inherited"}
ODD_PATH = {"name": "job", "roles": [{"name": "r", "entrypoint": "bin/${replica_id}", "env": {"PATH": ":/x"}}]}


@pytest.fixture
def module(torchx, monkeypatch):
    """Give TorchX's module."""
    found = theirs("torchx.schedulers.local_scheduler")
    for one in (found, scheduler):
        monkeypatch.setattr(one, "make_unique", pinned)
    return found


def start(module, specs, app, cfg, inherited, gpus, extra_paths=None):
    """Return what a scheduler would start: of each role the folders, of each replica all that Popen is given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.LocalScheduler, "_cuda_device_count", lambda _self: gpus)
        patch.setattr(request, "count_gpus", lambda: gpus)
        patch.setattr(os, "environ", inherited)
        if specs is our_specs:
            made: Any = scheduler.LocalScheduler("torchx", extra_paths=extra_paths, handle_signals=False)
        else:
            made = module.LocalScheduler("torchx", module.CWDImageProvider, extra_paths=extra_paths)
        asked = made.submit_dryrun(built(specs, app), cfg).request

        def full_env(param):
            if specs is our_specs:
                base = environment.launcher_environment()
                env = {**base, **environment.replica_environment(base, param.env)}
            else:
                env = made._get_replica_env(param)
            # The handle is added by TorchX's Runner.
            return {name: env[name] for name in sorted(env) if name != environment.JOB_ID}

        replicas = {
            name: [(one.args, full_env(one), one.cwd, one.stdout, one.stderr, one.combined) for one in params]
            for name, params in asked.role_params.items()
        }
    return {"app_id": asked.app_id, "log_dir": asked.log_dir, "folders": asked.role_log_dirs, "replicas": replicas}


@given(APPS, CFGS, INHERITED, EXTRA_PATHS, st.booleans(), st.sampled_from([0, 2, 3, 8]))
@example(ODD_PATH, {"log_dir": "/logs", "prepend_cwd": True}, ":/usr/bin:", ["/e/${replica_id}", "/x:"], False, 0)
@cases(1000)
def test_what_is_started(module, app, cfg, path, extra, others, available):
    inherited = {"HOME": "/home/me", **(OTHERS if others else {}), **({} if path is None else {"PATH": path})}

    def explain(their, our):
        return explained(app, path, their, our)

    case = (app, cfg, path, extra, available)
    compare(AREA, lambda specs: start(module, specs, app, cfg, inherited, available, extra), explain, case)


def explained(app, path, their, our):
    """Return the entry that a start falls under: the last one that has to be undone for both to be equal."""
    if isinstance(our, Refused):
        named = [app["name"], *(role["name"] for role in app["roles"])]
        return "names that are no folder's" if any(map(is_no_folder, named)) else None
    if isinstance(their, Refused):
        return None
    without_path = INTERPRETER not in (path or "")
    for name, applies, undo in [
        ("macros in the entrypoint", any("${" in role["entrypoint"] for role in app["roles"]), first_argument),
        ("torchrun on PATH", without_path and path, lambda their, _: add_to_path(their, INTERPRETER)),
        ("no PATH", not path, lambda their, _: add_to_path(their, os.defpath, INTERPRETER)),
        ("roles without GPUs", any(asks_for_less_than_none(role) for role in app["roles"]), no_devices),
    ]:
        if applies:
            undo(their, our)
        if repr(their) == repr(our):
            return name
    return None


def is_no_folder(name):
    return "/" in name or name in ("", ".", "..") or len(name) > 200


def asks_for_less_than_none(role):
    return "resource" not in role or role["resource"]["gpu"] < 0


def environments(made):
    return [env for replicas in made["replicas"].values() for _, env, *_ in replicas]


def first_argument(their, our):
    for replicas in their["replicas"].values():
        for number, (args, *_) in enumerate(replicas):
            args[0] = args[0].replace("${replica_id}", str(number))


def add_to_path(their, *folders):
    for env in environments(their):
        env["PATH"] = ":".join([env["PATH"], *folders])


def no_devices(*both):
    for env in [env for made in both for env in environments(made)]:
        env.pop(environment.VISIBLE_DEVICES, None)


def count_gpus(module, specs, printed, code=0):
    def run(args, text=False, **_):
        if code:
            raise subprocess.CalledProcessError(code, args)
        return subprocess.CompletedProcess(args, 0, printed if text else printed.encode(), "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", run)
        patch.setattr(environment, "_gpu_counts", {})  # the count is kept for the life of the program
        if specs is our_specs:
            return environment.count_gpus()
        return module.LocalScheduler("x", module.CWDImageProvider)._cuda_device_count()


@given(
    st.lists(st.sampled_from(WORDS[AREA]["listed_gpus"]), max_size=5),
    st.sampled_from(["", "\n"]),
    st.sampled_from([0, 0, 9]),
)
@cases(500)
def test_how_many_gpus_there_are(module, lines, end, code):
    def explain(their, our):
        counts = our == sum(line.startswith("GPU") for line in lines)
        return "lines that are no GPU" if counts and any(line[:3] in ("  M", "No ") for line in lines) else None

    compare(AREA, lambda specs: count_gpus(module, specs, "\n".join(lines) + end, code), explain, (lines, end, code))


@each_difference(AREA)
def test_each_difference_is_there(module, difference):
    def names(specs):
        def started(path=INTERPRETER, **role):
            roles = [{"name": "without", "entrypoint": "e"}, {"name": "r", "entrypoint": "e", **role}]
            cfg = {"log_dir": "/logs", "auto_set_cuda_visible_devices": True}
            made = start(module, specs, {"name": "job", "roles": roles}, cfg, {"HOME": "/", "PATH": path}, gpus=2)
            args, env, *_ = made["replicas"].popitem()[1][-1]
            # After the working folder.
            folders = env["PATH"].replace(INTERPRETER, "of the interpreter").split(":")[1:]
            return SimpleNamespace(args=args, path=folders, gpus=env.get(environment.VISIBLE_DEVICES))

        return {"started": started, "gpus": lambda *lines: count_gpus(module, specs, "\n".join(lines))}

    check_example(difference, names)
