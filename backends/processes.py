"""Which process is meant by a number: pids are used again, so a process is known by its start time too."""

from __future__ import annotations

# The supervisor is one file that imports nothing of ours, so it has these; others take them from here.
from .local.supervisor import is_running, read_process

__all__ = ["is_running", "read_process"]
