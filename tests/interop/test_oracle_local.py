"""How local replicas are started held against TorchX's: arguments, environment, folders, files and GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.app_defs import App, apps
from interop.oracle import Refused, cases, hold, names_of, outcome, theirs
from interop.plain_data import built
from interop.releases import pinned

import torchx_tui.specs as our_specs
from torchx_tui.backends.local import environment, request, scheduler
from torchx_tui.backends.local import environment as gpus
from torchx_tui.backends.local.scheduler import LocalScheduler

AREA = "local replicas"
INTERPRETER = str(Path(sys.executable).parent)
FOLDERS = ["/of/role", "/of/role:/two", "/x:", ":/x", "", "/m/${replica_id}", "$$d", ":"]
APPS = apps(
    ["job", "My_Job.v1", "a b", "é", "a/b", "..", "x" * 250],
    ["trainer", "ps", "r-1", "R_x", "a/b", "", "."],
    ["sh", "/bin/sh", "./run", "bin/${replica_id}"],
    {
        "env": st.dictionaries(
            st.sampled_from(["A", "PATH", "PATH", "TORCHELASTIC_ERROR_FILE", "PET_LOG_DIR", "TORCHX_RANK0_HOST",
                             "PYTHONUNBUFFERED", "CUDA_VISIBLE_DEVICES"]),
            st.sampled_from([*FOLDERS, "1", "${app_id}"]), max_size=3,
        ),
    },
)  # fmt: skip
CFGS = st.fixed_dictionaries(
    {"log_dir": st.just("/logs")},
    optional={"prepend_cwd": st.booleans(), "auto_set_cuda_visible_devices": st.booleans()},
)
INHERITED = st.sampled_from([f"/usr/bin:{INTERPRETER}", "/usr/bin:/bin", ":/usr/bin:", "", None])
EXTRA_PATHS = st.sampled_from([None, ["/extra"], ["/extra:", "/more"], ["/e/${replica_id}"]])
OTHERS = {"PYTHONUNBUFFERED": "1", "TORCHX_JOB_ID": "local_cwd://torchx/outer", "A": "inherited"}


@pytest.fixture
def their_module(torchx: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = theirs("torchx.schedulers.local_scheduler")
    monkeypatch.setattr(module, "make_unique", pinned)
    monkeypatch.setattr(scheduler, "make_unique", pinned)
    return module


def started(specs: Any, made: Any, app: App, cfg: dict[str, Any], full_env: Callable[[Any], dict[str, str]]) -> Any:
    """Return what a scheduler would start: of each role the folders, of each replica everything Popen is given."""
    asked = made.submit_dryrun(built(specs, app), cfg).request
    return {
        "app_id": asked.app_id, "log_dir": asked.log_dir, "folders": asked.role_log_dirs,
        "replicas": {
            name: [(one.args, full_env(one), one.cwd, one.stdout, one.stderr, one.combined) for one in params]
            for name, params in asked.role_params.items()
        },
    }  # fmt: skip


def our_environment(param: Any) -> dict[str, str]:
    inherited = environment.launcher_environment()
    return {**inherited, **environment.replica_environment(inherited, param.env)}


def in_order(made: Any) -> Any:
    """Return it with every environment in one order, and without the handle, which TorchX's Runner adds."""
    if isinstance(made, Refused):
        return made
    for replicas in made["replicas"].values():
        replicas[:] = [(args, _sorted(env), *rest) for args, env, *rest in replicas]
    return made


def _sorted(env: dict[str, str]) -> dict[str, str]:
    return {name: env[name] for name in sorted(env) if name != environment.JOB_ID}


ODD_PATH = {"name": "job", "roles": [{"name": "r", "entrypoint": "bin/${replica_id}", "env": {"PATH": ":/x"}}]}


@given(APPS, CFGS, INHERITED, EXTRA_PATHS, st.booleans(), st.sampled_from([0, 2, 3, 8]))
@example(ODD_PATH, {"log_dir": "/logs", "prepend_cwd": True}, ":/usr/bin:", ["/e/${replica_id}", "/x:"], False, 0)
@cases(1000)
def test_what_is_started(
    their_module: Any, app: App, cfg: dict[str, Any], path: str | None, extra: Any, others: bool, available: int
) -> None:
    inherited = {"HOME": "/home/me", **(OTHERS if others else {}), **({} if path is None else {"PATH": path})}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(their_module.LocalScheduler, "_cuda_device_count", lambda _self: available)
        patch.setattr(request, "count_gpus", lambda: available)
        patch.setattr(os, "environ", inherited)
        their_scheduler = their_module.LocalScheduler("torchx", their_module.CWDImageProvider, extra_paths=extra)
        our_scheduler = LocalScheduler("torchx", extra_paths=extra, handle_signals=False)
        their_start = outcome(
            lambda: started(theirs("torchx.specs"), their_scheduler, app, cfg, their_scheduler._get_replica_env)
        )
        our_start = outcome(lambda: started(our_specs, our_scheduler, app, cfg, our_environment))

    def explain(their: Any, our: Any) -> str | None:
        return explained(app, cfg, path, extra, available, their, our)

    hold(AREA, in_order(their_start), in_order(our_start), explain, (app, cfg, path, extra, available))


def explained(app: App, cfg: Any, path: str | None, extra: Any, available: int, their: Any, our: Any) -> str | None:
    """Return the entry that a start falls under: the last one that has to be undone for both to be equal."""
    if isinstance(our, Refused):
        named = [app["name"], *(role["name"] for role in app["roles"])]
        return "names that are no folder's" if any(map(no_folder, named)) else None
    if isinstance(their, Refused):
        return None
    asked = [role.get("num_replicas", 1) * gpu(role) for role in app["roles"]]
    without_path = INTERPRETER not in (path or "")
    for name, applies, undo in [
        ("macros in the entrypoint", any("${" in role["entrypoint"] for role in app["roles"]), first_argument),
        ("torchrun on PATH", without_path and path, lambda their, _: add_to_path(their, INTERPRETER)),
        ("no PATH", not path, lambda their, _: add_to_path(their, os.defpath, INTERPRETER)),
        ("roles without GPUs", min(asked) < 0, lambda their, our: [no_devices(one) for one in (their, our)]),
    ]:  # fmt: skip
        if applies:
            undo(their, our)
        if repr(their) == repr(our):
            return name
    return None


def no_folder(name: str) -> bool:
    return "/" in name or name in ("", ".", "..") or len(name) > 200


def gpu(role: dict[str, Any]) -> int:
    return role["resource"]["gpu"] if "resource" in role else -1


def environments(made: Any) -> list[dict[str, str]]:
    return [env for replicas in made["replicas"].values() for _, env, *_ in replicas]


def first_argument(their: Any, _our: Any) -> None:
    for replicas in their["replicas"].values():
        for number, (args, *_) in enumerate(replicas):
            args[0] = args[0].replace("${replica_id}", str(number))


def add_to_path(their: Any, *folders: str) -> None:
    for env in environments(their):
        env["PATH"] = ":".join([env["PATH"], *folders])


def no_devices(made: Any) -> None:
    for env in environments(made):
        env.pop(gpus.VISIBLE_DEVICES, None)


LISTED = st.lists(
    st.sampled_from(["GPU 0: A100 (UUID: GPU-1)", "GPU 1: A100 (UUID: GPU-2)", "  MIG 1g.5gb Device 0: (UUID: MIG-1)",
                     "", "No devices were found"]),
    max_size=5,
)  # fmt: skip


@given(LISTED, st.sampled_from(["", "\n"]), st.sampled_from([0, 0, 9]))
@cases(500)
def test_how_many_gpus_there_are(their_module: Any, lines: list[str], end: str, code: int) -> None:
    def run(args: Any, text: bool = False, **_: Any) -> Any:
        if code:
            raise subprocess.CalledProcessError(code, args)
        printed = "\n".join(lines) + end
        return subprocess.CompletedProcess(args, 0, printed if text else printed.encode(), "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", run)
        patch.setattr(gpus, "_found", {})
        their_count = their_module.LocalScheduler("x", their_module.CWDImageProvider)._cuda_device_count()
        our_count = gpus.count_gpus()

    def explain(_their: Any, our: Any) -> str | None:
        counts = our == sum(line.startswith("GPU") for line in lines)
        return "lines that are no GPU" if counts and any(line[:3] in ("  M", "No ") for line in lines) else None

    hold(AREA, their_count, our_count, explain, (lines, end, code))


def own_path(replica: Any) -> list[str]:
    """Return the folders of PATH after the working one."""
    return replica[1]["PATH"].split(":")[1:]


def start(specs: Any, made: Any, path: str = INTERPRETER, cfg: dict[str, Any] | None = None, **role: Any) -> Any:
    beside = {"name": "without", "entrypoint": "e"}
    app = {"name": "job", "roles": [beside, {"name": "r", "entrypoint": "e", **role}]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs("torchx.schedulers.local_scheduler").LocalScheduler, "_cuda_device_count", lambda _: 2)
        patch.setattr(request, "count_gpus", lambda: 2)
        patch.setattr(os, "environ", {"HOME": "/", "PATH": path})
        env = our_environment if specs is our_specs else made._get_replica_env
        return started(specs, made, app, {"log_dir": "/logs", **(cfg or {})}, env)["replicas"].popitem()[1][-1]


GPUS = {"cfg": {"auto_set_cuda_visible_devices": True}, "num_replicas": 3, "resource": {"cpu": 1, "gpu": 1}}
# Of each entry: the start of one replica, what is looked at, what TorchX has and what ours do.
EXAMPLES: dict[str, tuple[dict[str, Any], Callable[[Any], Any], Any, Any]] = {
    "macros in the entrypoint": (
        {"entrypoint": "b/${replica_id}"}, lambda one: one[0], "['b/${replica_id}']", "['b/0']"
    ),
    "torchrun on PATH": (
        {"path": "/usr/bin"}, own_path, "['/usr/bin']", f"['/usr/bin', '{INTERPRETER}']"
    ),
    "no PATH": (
        {"path": ""}, own_path, "[]", repr([*os.defpath.split(":"), INTERPRETER])
    ),
    "names that are no folder's": ({"name": "a/b"}, lambda one: one[0], "['e']", "AppDefError"),
    "roles without GPUs": (GPUS, lambda one: one[1].get(gpus.VISIBLE_DEVICES), "'2'", "None"),
}  # fmt: skip


def test_no_example_is_left_over() -> None:
    assert {*EXAMPLES, "lines that are no GPU"} == set(names_of(AREA))


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_each_difference_is_there(their_module: Any, name: str) -> None:
    made, look, their_text, our_text = EXAMPLES[name]
    their_scheduler = their_module.LocalScheduler("torchx", their_module.CWDImageProvider)
    our_scheduler = LocalScheduler("torchx", handle_signals=False)
    assert repr(outcome(lambda: look(start(theirs("torchx.specs"), their_scheduler, **made)))) == their_text
    assert repr(outcome(lambda: look(start(our_specs, our_scheduler, **made)))) == our_text
