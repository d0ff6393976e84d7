"""The resources of a machine that a replica needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

RESOURCE_NAME_TAG = "torchx/named_resources.name"
IS_FRACTIONAL_TAG = "torchx/named_resources.is_fractional"


@dataclass
class Resource:
    """The resources of one replica.

    Args:
        cpu: Logical CPU cores.
        gpu: GPUs.
        memMB: Memory in MB.
        capabilities: Further needs that a scheduler understands, such as an instance type.
        devices: Named devices and how many of each, such as `{"vpc.amazonaws.com/efa": 1}`.
        tags: Notes on the resource that no scheduler reads.
    """

    cpu: int
    gpu: int
    memMB: int
    capabilities: dict[str, Any] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    tags: dict[str, Any] = field(default_factory=dict)

    def is_fractional(self) -> bool:
        """Return whether this is a slice of a larger named resource."""
        return bool(self.tags.get(IS_FRACTIONAL_TAG, False))

    def get_resource_name(self) -> str | None:
        """Return the name that this resource was looked up by, or None if it was given in numbers."""
        name = self.tags.get(RESOURCE_NAME_TAG)
        return None if name is None else str(name)

    @staticmethod
    def copy(original: Resource, **capabilities: Any) -> Resource:
        """Return a copy of a resource with further capabilities, which win over the original's."""
        return replace(
            original,
            capabilities={**original.capabilities, **capabilities},
            devices=dict(original.devices),
            tags=dict(original.tags),
        )


NULL_RESOURCE = Resource(cpu=-1, gpu=-1, memMB=-1)


def null_resource() -> Resource:
    """Return a new resource that asks for nothing."""
    return Resource(cpu=-1, gpu=-1, memMB=-1)
