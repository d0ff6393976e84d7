"""Named resources that no vendor sells: sizes to start with, which may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .resources import Resource

# The sizes of TorchX's resources of the same names.
_TABLE = """
name        CPUs GPUs memory in MB
gpu.small      8    1        32768
gpu.medium    16    2        65536
gpu.large     32    4       131072
gpu.xlarge    64    8       262144
cpu.nano       1    0          512
cpu.micro      1    0         1024
cpu.small      1    0         2048
cpu.medium     2    0         4096
cpu.large      2    0         8192
cpu.xlarge     8    0        32768
"""


def _factory(cpu: int, gpu: int, memory: int) -> Callable[[], Resource]:
    return lambda: Resource(cpu=cpu, gpu=gpu, memMB=memory)


NAMED_RESOURCES: Mapping[str, Callable[[], Resource]] = {
    name: _factory(*map(int, figures)) for name, *figures in map(str.split, _TABLE.strip().splitlines()[1:])
}
"""The resources by name."""
