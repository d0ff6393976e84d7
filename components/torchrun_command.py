"""The command line of torchrun, as a job runs it with `bash -c`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from ..specs import macros
from .topology import Topology

DEFAULT_EXPERIMENT = "default-experiment"

# What makes PyTorch say more about a hang or a crash.
DEBUG_FLAGS = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "NCCL_DESYNC_DEBUG": "1",
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
}


def torchrun_command(
    program: Sequence[str],
    topology: Topology,
    *,
    rdzv_backend: str,
    rdzv_conf: str | None,
    rdzv_port: int,
    tee: int,
) -> str:
    """Return the text for `bash -c`.

    Args:
        program: The script, or `-m` and the module, and its arguments.
        topology: Nodes and workers.
        rdzv_backend: How the nodes find one another, such as `c10d`.
        rdzv_conf: Further settings of it, `key=value` separated by commas.
        rdzv_port: The port on the first node.
        tee: Which streams of the workers are also torchrun's own: 0 none, 1 stdout, 2 stderr, 3 both.
    """
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
    # The endpoint is bash's to expand, so it alone is not quoted.
    return " ".join([shlex.join(before), "--rdzv_endpoint", endpoint, shlex.join([*after, *program])])


def program_name(script: str | None, module: str | None) -> str:
    """Return a script's file name without its ending, or a module's last part."""
    return PurePath(script).stem if script else (module or "").rpartition(".")[2]


def experiment_and_run(name: str, default_run: str) -> tuple[str, str]:
    """Return experiment and run of `experiment/run`, `experiment/`, `/run` or `run`.

    Args:
        name: The text; a missing experiment is `default-experiment`.
        default_run: The run where the text has none.
    """
    experiment, slash, run = name.partition("/")
    if not slash:
        experiment, run = "", name
    return experiment or DEFAULT_EXPERIMENT, run or default_run
