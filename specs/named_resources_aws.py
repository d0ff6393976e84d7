"""Named resources for AWS EC2 instances: `aws_` and the instance type, such as `aws_p4d.24xlarge`.

Source of the figures: https://aws.amazon.com/ec2/instance-types/. The names, the reserved share of memory and the names
of devices are TorchX's, so that both tools request the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from .resources import Resource

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
EFA_DEVICE = "vpc.amazonaws.com/efa"
NEURON_DEVICE = "aws.amazon.com/neurondevice"

# 96 % of each GiB, in MB: the rest is for the operating system and its daemons.
_MB_OF_A_GIB = int(1024 * 0.96)

_TABLE = """
instance            CPUs GPUs     GiB  EFA  Neuron
c5.18xlarge          72    0     142    0       0
g4dn.12xlarge        48    4     192    1       0
g4dn.16xlarge        64    1     256    1       0
g4dn.2xlarge          8    1      32    0       0
g4dn.4xlarge         16    1      64    0       0
g4dn.8xlarge         32    1     128    1       0
g4dn.metal           96    8     384    1       0
g4dn.xlarge           4    1      16    0       0
g5.12xlarge          48    4     192    1       0
g5.16xlarge          64    1     256    1       0
g5.24xlarge          96    4     384    1       0
g5.2xlarge            8    1      32    0       0
g5.48xlarge         192    8     768    1       0
g5.4xlarge           16    1      64    0       0
g5.8xlarge           32    1     128    1       0
g5.xlarge             4    1      16    0       0
g6e.12xlarge         48    4     384    0       0
g6e.16xlarge         64    1     512    0       0
g6e.24xlarge         96    4     768    2       0
g6e.2xlarge           8    1      64    0       0
g6e.48xlarge        192    8    1536    4       0
g6e.4xlarge          16    1     128    0       0
g6e.8xlarge          32    1     256    0       0
g6e.xlarge            4    1      32    0       0
inf2.24xlarge        96    0     384    0       6
inf2.48xlarge       192    0     768    0      12
inf2.8xlarge         32    0     128    0       1
inf2.xlarge           4    0      16    0       1
m5.12xlarge          48    0     192    0       0
m5.16xlarge          64    0     256    0       0
m5.24xlarge          96    0     384    0       0
m5.2xlarge            8    0      32    0       0
m5.4xlarge           16    0      64    0       0
m5.8xlarge           32    0     128    0       0
m5.large              2    0       8    0       0
m5.metal             96    0     384    0       0
m5.xlarge             4    0      16    0       0
m5d.12xlarge         48    0     192    0       0
m5d.16xlarge         64    0     256    0       0
m5d.24xlarge         96    0     384    0       0
m5d.2xlarge           8    0      32    0       0
m5d.4xlarge          16    0      64    0       0
m5d.8xlarge          32    0     128    0       0
m5d.large             2    0       8    0       0
m5d.metal            96    0     384    0       0
m5d.xlarge            4    0      16    0       0
p3.16xlarge          64    8     488    0       0
p3.2xlarge            8    1      61    0       0
p3.8xlarge           32    4     244    0       0
p3dn.24xlarge        96    8     768    1       0
p4d.24xlarge         96    8    1152    4       0
p4de.24xlarge        96    8    1152    4       0
p5.48xlarge         192    8    2048   32       0
p5e.48xlarge        192    8    2048   32       0
p5en.48xlarge       192    8    2048   16       0
p6-b200.48xlarge    192    8    2048    8       0
p6-b300.48xlarge    192    8    4096   16       0
p6e-gb200.36xlarge  144    4     960   16       0
t3.medium             2    0       4    0       0
trn1.2xlarge          8    0      32    0       1
trn1.32xlarge       128    0     512    8      16
"""


def _factory(instance: str, cpu: int, gpu: int, gib: int, efa: int, neuron: int) -> Callable[[], Resource]:
    devices = {EFA_DEVICE: efa, NEURON_DEVICE: neuron}
    return lambda: Resource(
        cpu=cpu,
        gpu=gpu,
        memMB=gib * _MB_OF_A_GIB,
        capabilities={INSTANCE_TYPE: instance},
        devices={name: count for name, count in devices.items() if count},
    )


NAMED_RESOURCES: Mapping[str, Callable[[], Resource]] = {
    f"aws_{instance}": _factory(instance, *map(int, figures))
    for instance, *figures in map(str.split, _TABLE.strip().splitlines()[1:])
}


def instance_type_from_resource(resource: Resource) -> str | None:
    """Return the instance type that a resource names, None where it names none; then it warns too, as TorchX does."""
    found = resource.capabilities.get(INSTANCE_TYPE)
    if found is None:
        warnings.warn(
            f"the resource names no instance type: give it the capability {INSTANCE_TYPE}, so that all nodes are alike",
            stacklevel=2,
        )
    return found
