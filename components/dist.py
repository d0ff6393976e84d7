"""Builtin components for distributed PyTorch: one role, a replica for each node, torchrun on each."""

import os
import shlex
import warnings
from pathlib import PurePath
from typing import Any

from torchx_tui.components.checked import checked_mounts, checked_resource, exactly_one
from torchx_tui.components.image import DEFAULT_IMAGE
from torchx_tui.components.topology import parse_topology, with_workers_of_host
from torchx_tui.specs.roles import AppDef, Role, macros

DEFAULT_EXPERIMENT = "default-experiment"
# Variables that make PyTorch report more about a hang or a crash.
DEBUG_FLAGS = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "NCCL_DESYNC_DEBUG": "1",
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
}


def torchrun(
    *script_args: str,
    script: str | None = None,
    m: str | None = None,
    image: str = DEFAULT_IMAGE,
    name: str = "/",
    h: str | None = None,
    cpu: int = 2,
    gpu: int = 0,
    memMB: int = 1024,
    j: str = "1x2",
    env: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
    max_retries: int = 0,
    rdzv_port: int = 29500,
    rdzv_backend: str = "c10d",
    rdzv_conf: str | None = None,
    mounts: list[str] | None = None,
    debug: bool = False,
    tee: int = 3,
) -> AppDef:
    """Run a distributed PyTorch program with torchrun.

    Args:
        script_args: arguments of the script or module
        script: script to run
        m: module to run
        image: image to use
        name: name of the job: experiment/run, experiment/, /run or run
        h: a named resource, which wins over cpu, gpu and memMB
        cpu: number of cpus per node
        gpu: number of gpus per node
        memMB: memory in MB per node
        j: nodes and workers on each: 2x8; 1:4x8 is elastic; 8 alone is workers, or nodes where h has GPUs to count
        env: environment variables (ENV1=v1,ENV2=v2)
        metadata: metadata for the scheduler (KEY1=v1,KEY2=v2)
        max_retries: the number of scheduler retries allowed
        rdzv_port: port on the first node where the nodes meet; one node takes a free port
        rdzv_backend: how the nodes meet
        rdzv_conf: further settings of rdzv_backend (join_timeout=600,timeout=600)
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
        debug: set the variables that make PyTorch say more about hangs and crashes
        tee: streams of the workers that are also the job's: 0 none, 1 stdout, 2 stderr, 3 both
    """
    exactly_one(script=script, m=m)
    topology = parse_topology(with_workers_of_host(j, h) if h is not None else j)
    experiment, run = experiment_and_run(name, program_name(script, m))
    program = [script] if script is not None else ["-m", m or ""]
    # One node lets torchrun pick a free port. Otherwise bash reads the first node's host from the variable that the
    # scheduler names; `$$` is a `$` once macros are substituted.
    many = topology.nodes > 1
    endpoint = f"$${{{macros.rank0_env}:=localhost}}:{rdzv_port}" if many else "localhost:0"
    before = ["torchrun", "--rdzv_backend", rdzv_backend]
    if rdzv_conf is not None:
        before += ["--rdzv_conf", rdzv_conf]
    after = ["--rdzv_id", macros.app_id, "--nnodes", topology.nodes_text, "--nproc_per_node", str(topology.workers)]
    after += ["--tee", str(tee), "--role", ""]
    if rdzv_backend == "static":
        after += ["--node_rank", macros.replica_id]
    words = shlex.join([*after, *program, *script_args])
    # Only the endpoint is not quoted, since bash expands it.
    command = f"{shlex.join(before)} --rdzv_endpoint {endpoint} {words}"
    role = Role(
        name=program_name(script, m),
        image=image,
        min_replicas=topology.fewest,
        entrypoint="bash",
        args=["-c", command],
        num_replicas=topology.nodes,
        resource=checked_resource(cpu, gpu, memMB, h),
        env=_environment(env, experiment, run, debug),
        port_map={"c10d": rdzv_port},
        max_retries=max_retries,
        mounts=checked_mounts(mounts),
    )
    return AppDef(name=run, roles=[role], metadata=dict(metadata or {}))


def ddp(
    *script_args: str,
    script: str | None = None,
    m: str | None = None,
    image: str = DEFAULT_IMAGE,
    name: str = "/",
    h: str | None = None,
    cpu: int = 2,
    gpu: int = 0,
    memMB: int = 1024,
    j: str = "1x2",
    env: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
    max_retries: int = 0,
    rdzv_port: int = 29500,
    rdzv_backend: str = "c10d",
    rdzv_conf: str | None = None,
    mounts: list[str] | None = None,
    debug: bool = False,
    tee: int = 3,
) -> AppDef:
    """Run a distributed PyTorch program: the earlier name of dist.torchrun.

    Args:
        script_args: arguments of the script or module
        script: script to run
        m: module to run
        image: image to use
        name: name of the job: experiment/run, experiment/, /run or run
        h: a named resource, which wins over cpu, gpu and memMB
        cpu: number of cpus per node
        gpu: number of gpus per node
        memMB: memory in MB per node
        j: nodes and workers on each: 2x8; 1:4x8 is elastic; 8 alone is workers on one node
        env: environment variables (ENV1=v1,ENV2=v2)
        metadata: metadata for the scheduler (KEY1=v1,KEY2=v2)
        max_retries: the number of scheduler retries allowed
        rdzv_port: port on the first node where the nodes meet; one node takes a free port
        rdzv_backend: how the nodes meet
        rdzv_conf: further settings of rdzv_backend (join_timeout=600,timeout=600)
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
        debug: set the variables that make PyTorch say more about hangs and crashes
        tee: streams of the workers that are also the job's: 0 none, 1 stdout, 2 stderr, 3 both
    """
    options: dict[str, Any] = {**locals(), "j": f"1x{j}" if j.isdigit() else j}
    _warn_deprecated("dist.ddp")
    return torchrun(*options.pop("script_args"), **options)


def spmd(
    *args: str,
    script: str | None = None,
    m: str | None = None,
    image: str = DEFAULT_IMAGE,
    name: str = "/",
    h: str = "gpu.small",
    j: str = "1x1",
    env: dict[str, str] | None = None,
    metadata: dict[str, str] | None = None,
    max_retries: int = 0,
    mounts: list[str] | None = None,
    debug: bool = False,
) -> AppDef:
    """Run a distributed PyTorch program on named hosts: an earlier form of dist.torchrun.

    Args:
        args: arguments of the script or module
        script: script to run
        m: module to run
        image: image to use
        name: name of the job: experiment/run, experiment/, /run or run
        h: a named resource
        j: nodes and workers on each: 2x8; 2 alone is nodes, with a worker for each GPU of h
        env: environment variables (ENV1=v1,ENV2=v2)
        metadata: metadata for the scheduler (KEY1=v1,KEY2=v2)
        max_retries: the number of scheduler retries allowed
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
        debug: set the variables that make PyTorch say more about hangs and crashes
    """
    options = {**locals()}
    _warn_deprecated("dist.spmd")
    return torchrun(*options.pop("args"), **options)


def program_name(script: str | None, module: str | None) -> str:
    """Return a script's file name without its ending, or a module's last part."""
    return PurePath(script).stem if script else (module or "").rpartition(".")[2]


def experiment_and_run(name: str, default_run: str) -> tuple[str, str]:
    """Split `experiment/run`, `experiment/`, `/run` or `run` into experiment and run.

    Args:
        name: The text; a missing experiment is `default-experiment`.
        default_run: The run if the text has none.
    """
    experiment, slash, run = name.partition("/")
    if not slash:
        experiment, run = "", name
    return experiment or DEFAULT_EXPERIMENT, run or default_run


def _environment(env: dict[str, str] | None, experiment: str, run: str, debug: bool) -> dict[str, str]:
    return {
        "LOGLEVEL": os.environ.get("LOGLEVEL", "WARNING"),
        **(env or {}),
        "TORCHX_TRACKING_EXPERIMENT_NAME": experiment,
        "TORCHX_TRACKING_RUN_NAME": run,
        **(DEBUG_FLAGS if debug else {}),
    }


def _warn_deprecated(name: str) -> None:
    warnings.warn(f"{name} is deprecated, use dist.torchrun", DeprecationWarning, stacklevel=3)
