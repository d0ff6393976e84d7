"""torchx-tui: a full-screen terminal dashboard for TorchX jobs."""

__version__ = "0.2.0"
