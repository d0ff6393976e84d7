"""The run options of local_cwd."""

from __future__ import annotations

from dataclasses import dataclass

from ..structured_opts import StructuredOpts


@dataclass
class LocalOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts local_cwd` prints them."""

    log_dir: str | None = None
    """Directory to write stdout/stderr log files of replicas."""

    prepend_cwd: bool = False
    """If set, prepends CWD to replica's PATH env var making binaries in CWD take precedence."""

    auto_set_cuda_visible_devices: bool = False
    """Sets CUDA_VISIBLE_DEVICES for roles that request GPU resources."""
