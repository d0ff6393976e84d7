"""Resources of a container: quantities, limits and requests."""

import pytest
from backend.kubernetes.apps import container, resource, role
from backend.kubernetes.tables import table

from torchx_tui.backends.kube.pod_template import cores, megabytes
from torchx_tui.specs.named_resources_aws import EFA_DEVICE
from torchx_tui.specs.resources import Resource


def limits_of(cpu=-1, gpu=-1, memory=-1, devices=None, **options):
    wanted = Resource(cpu, gpu, memory, devices=devices or {})
    return container(resource(role(resource=wanted), **options))["resources"]


def test_part_of_a_node_is_reserved():
    assert limits_of(2, 1, 2000) == {
        "limits": {"cpu": "2000m", "memory": "2000M", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "1900m", "memory": "976M", "nvidia.com/gpu": "1"},
    }
    assert limits_of(0.05, 0, 500) == {
        "limits": {"cpu": "50m", "memory": "500M"},
        "requests": {"cpu": "0m", "memory": "0M"},
    }
    assert limits_of() == {"limits": {}, "requests": {}}
    assert limits_of(1, -1, 2000, reserved_millicpu=0, reserved_memmb=1000)["requests"] == {
        "cpu": "1000m",
        "memory": "1000M",
    }


@pytest.mark.parametrize(
    ("devices", "option", "efa"),
    [
        ({EFA_DEVICE: 4, "x/y": 2}, None, "4"),
        ({EFA_DEVICE: 4, "x/y": 2}, 1, "1"),
        ({EFA_DEVICE: 4, "x/y": 2}, 0, None),
        ({"x/y": 2}, 3, "3"),
    ],
)
def test_devices(devices, option, efa):
    assert limits_of(devices=devices, efa_device_count=option)["limits"] == {
        "x/y": "2", **({EFA_DEVICE: efa} if efa else {}),
    }  # fmt: skip


@table("resources.yaml", "cores", "text amount")
def test_cores(text, amount):
    assert cores(text) == (pytest.approx(amount) if amount is not None else None)


def test_megabytes():
    assert [megabytes(text) for text in ("1", "1500k", "2M", "1Gi", "x", None)] == [1, 2, 2, 1074, None, None]
