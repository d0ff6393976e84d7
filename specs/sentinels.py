"""Words that stand for the absence of a value, with TorchX's spelling."""

from __future__ import annotations

ALL = "all"
MISSING = "<MISSING>"
NONE = "<NONE>"
UNKNOWN = "<UNKNOWN>"
NA = "<<NA>>"
