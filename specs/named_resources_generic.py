"""Named resources that no vendor sells: sizes to start with, which may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .resources import Resource

# name: (CPU cores, GPUs, memory in MB), the sizes of TorchX's resources of the same names
_SIZES = {
    "gpu.small": (8, 1, 32 * 1024),
    "gpu.medium": (16, 2, 64 * 1024),
    "gpu.large": (32, 4, 128 * 1024),
    "gpu.xlarge": (64, 8, 256 * 1024),
    "cpu.nano": (1, 0, 512),
    "cpu.micro": (1, 0, 1024),
    "cpu.small": (1, 0, 2 * 1024),
    "cpu.medium": (2, 0, 4 * 1024),
    "cpu.large": (2, 0, 8 * 1024),
    "cpu.xlarge": (8, 0, 32 * 1024),
}


def _factory(cpu: int, gpu: int, memory: int) -> Callable[[], Resource]:
    return lambda: Resource(cpu=cpu, gpu=gpu, memMB=memory)


NAMED_RESOURCES: Mapping[str, Callable[[], Resource]] = {name: _factory(*size) for name, size in _SIZES.items()}
