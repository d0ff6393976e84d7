"""The default image of the builtin components."""

from __future__ import annotations

# TorchX's, so that a component gives the same AppDef here and there; its tag is the version of TorchX that we follow.
DEFAULT_IMAGE = "ghcr.io/pytorch/torchx:2026.10.26"
TORCHX_VERSION = DEFAULT_IMAGE.rpartition(":")[2]
