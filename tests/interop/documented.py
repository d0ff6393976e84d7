"""Everything that the documentation of TorchX names, part by part."""

from __future__ import annotations

from interop.documented_kubernetes import KUBERNETES
from interop.documented_local_docker import LOCAL_AND_DOCKER
from interop.documented_names import Part
from interop.documented_scheduler_api import SCHEDULER_API
from interop.documented_schedulers import SCHEDULERS
from interop.documented_specs import SPECS

PARTS: tuple[Part, ...] = (SPECS, LOCAL_AND_DOCKER, SCHEDULERS, KUBERNETES, SCHEDULER_API)
