"""AppDefs for Kubernetes, made with either package's specs, and the arguments of `app_to_resource` for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop.docker_apps import APPS as ANYWHERE
from interop.docker_apps import Made, make_app, make_role


def _overlaid(overlay: Any, **changes: Any) -> Callable[[Any], Made]:
    return lambda specs: make_app(specs, make_role(specs, metadata={"kubernetes": overlay}, **changes))


def _with(**arguments: Any) -> Callable[[Any], Made]:
    def make(specs: Any) -> Made:
        devices = {"vpc.amazonaws.com/efa": 4, "example.com/fpga": 1}
        resource = specs.Resource(cpu=2, gpu=1, memMB=4096, devices=devices)
        return make_app(specs, make_role(specs, resource=resource), cfg=arguments)

    return make


_TOLERATION = {"key": "gpu", "operator": "Exists"}
_BY_KIND = {"__torchx_overlays__": True}

ONLY_HERE: dict[str, Callable[[Any], Made]] = {
    "a service account": _with(service_account="account"),
    "an empty service account": _with(service_account=""),
    "a priority class": _with(priority_class="high"),
    "nothing reserved": _with(reserved_millicpu=0, reserved_memmb=0),
    "more reserved than there is": _with(reserved_millicpu=9000, reserved_memmb=9000),
    "no EFA": _with(efa_device_count=0),
    "more EFA": _with(efa_device_count=32),
    "EFA where there was none": lambda specs: make_app(specs, cfg={"efa_device_count": 1}),
    "a field of the pod": lambda specs: make_app(
        specs, make_role(specs, env={"IP": "[FIELD_PATH]status.podIP", "NAME": "[FIELD_PATH]metadata.name", "X": "[F"})
    ),
    "an instance type": lambda specs: make_app(
        specs,
        make_role(
            specs,
            resource=specs.Resource(
                cpu=1, gpu=0, memMB=64, capabilities={"node.kubernetes.io/instance-type": "p4d.24xlarge"}
            ),
        ),
    ),
    "elastic, all needed": lambda specs: make_app(specs, make_role(specs, num_replicas=3, min_replicas=3)),
    "elastic, more needed than there are": lambda specs: make_app(
        specs, make_role(specs, num_replicas=2, min_replicas=5)
    ),
    "elastic beside one that is not": lambda specs: make_app(
        specs, make_role(specs, "a", num_replicas=3, min_replicas=1), make_role(specs, "b", num_replicas=2)
    ),
    "retries of several roles": lambda specs: make_app(
        specs,
        make_role(specs, "a", max_retries=3),
        make_role(specs, "b", max_retries=1, retry_policy=specs.RetryPolicy.REPLICA),
        make_role(specs, "c", max_retries=5),
    ),
    "retries of one role only": lambda specs: make_app(
        specs, make_role(specs, "a", max_retries=3), make_role(specs, "b")
    ),
    "the first host, of several roles": lambda specs: make_app(
        specs,
        make_role(specs, "Lead_er.1", num_replicas=2, args=["${rank0_env}"]),
        make_role(specs, "b", args=["$${${rank0_env}:=localhost}"]),
    ),
    "an overlay that adds": _overlaid({"spec": {"tolerations": [_TOLERATION], "nodeSelector": {"disk": "ssd"}}}),
    "an overlay by kind": _overlaid({**_BY_KIND, "V1Pod": {"spec": {"hostNetwork": True}}}),
    "an overlay of another kind": _overlaid({**_BY_KIND, "V1Service": {"spec": {"hostNetwork": True}}}),
    "an overlay that appends a container": _overlaid({"spec": {"containers": [{"name": "side", "image": "b:local"}]}}),
    "an overlay that replaces by a tuple": _overlaid(
        {"spec": {"volumes": ({"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},)}}
    ),
    "an overlay that replaces": _overlaid({"spec": {"__put__:nodeSelector": {"a": "b"}}}),
    "an overlay that removes": _overlaid({"spec": {"__del__:restartPolicy": None, "__del__:no": None}}),
    "an overlay that sets to nothing": _overlaid({"spec": {"restartPolicy": None}}),
    "an overlay that joins": _overlaid(
        {"spec": {"__join__:containers:name": [{"name": "trainer-0", "workingDir": "/x"}]}}
    ),
    "an overlay of metadata": _overlaid(
        {"metadata": {"labels": {"team": "x"}, "annotations": {"sidecar.istio.io/inject": "true"}}}
    ),
    "an overlay of what is no part of a template": _overlaid({"status": {"phase": "x"}, "kind": "Other"}),
    "an overlay with signs that macros know": _overlaid(
        {"spec": {"containers": [{"name": "s", "image": "b", "args": ["$$", "$(A)", "$app_id", "${A}"]}]}}
    ),
    "an empty overlay": _overlaid({}),
    "an overlay that is none": _overlaid(None),
}

# What only Docker has options for.
_NOT_HERE = ("privileged", "env of the options", "copied variables")

APPS = {**{name: make for name, make in ANYWHERE.items() if name not in _NOT_HERE}, **ONLY_HERE}
