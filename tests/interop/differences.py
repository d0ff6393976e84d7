"""Where torchx-tui does not do what TorchX does, and why: everything else that is compared is equal."""

from __future__ import annotations

from interop.difference import Difference
from interop.differences_of_components import COMPONENTS
from interop.differences_of_releases import RELEASES
from interop.differences_of_schedulers import SCHEDULERS
from interop.differences_of_specs import SPECS

__all__ = ["DIFFERENCES", "Difference"]

DIFFERENCES: tuple[Difference, ...] = (*SPECS, *COMPONENTS, *SCHEDULERS, *RELEASES)
