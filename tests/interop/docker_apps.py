"""AppDefs of every kind, made with either package's specs: theirs and ours have the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Made = tuple[Any, dict[str, Any]]
"""An AppDef and the run options that it is launched with."""


def make_role(specs: Any, name: str = "trainer", **changes: Any) -> Any:
    """Return a role of either package."""
    changes.setdefault("image", "busybox:local")
    changes.setdefault("entrypoint", "sh")
    changes.setdefault("args", ["-c", "echo hello"])
    changes.setdefault("resource", specs.Resource(cpu=1, gpu=0, memMB=64))
    return specs.Role(name=name, **changes)


def make_app(specs: Any, *roles: Any, name: str = "job", cfg: dict[str, Any] | None = None) -> Made:
    """Return an AppDef of either package, with one role where none are given."""
    return specs.AppDef(name=name, roles=list(roles) or [make_role(specs)]), cfg or {}


def _mounted(specs: Any, *texts: str) -> Made:
    return make_app(
        specs, make_role(specs, mounts=specs.parse_mounts([part for text in texts for part in text.split(",")]))
    )


def _sized(specs: Any, **resource: Any) -> Made:
    return make_app(specs, make_role(specs, resource=specs.Resource(**{"cpu": 1, "gpu": 0, "memMB": 64, **resource})))


APPS: dict[str, Callable[[Any], Made]] = {
    "plain": lambda specs: make_app(specs),
    "no resource": lambda specs: make_app(specs, specs.Role(name="r", image="i", entrypoint="e")),
    "no arguments": lambda specs: make_app(specs, make_role(specs, args=[])),
    "many arguments": lambda specs: make_app(
        specs, make_role(specs, args=["a b", "", "ü", "--x=$HOME", "new\nline", "'\""])
    ),
    "an image by digest": lambda specs: make_app(specs, make_role(specs, image="sha256:" + "a" * 64)),
    "an image of a registry": lambda specs: make_app(
        specs, make_role(specs, image="registry.example.com:5000/team/image:1.2")
    ),
    "replicas": lambda specs: make_app(specs, make_role(specs, num_replicas=4)),
    "more than ten replicas": lambda specs: make_app(specs, make_role(specs, num_replicas=12)),
    "an elastic role": lambda specs: make_app(specs, make_role(specs, num_replicas=2, min_replicas=1)),
    "several roles": lambda specs: make_app(
        specs, make_role(specs, "ps", num_replicas=2), make_role(specs, "worker"), make_role(specs, "r")
    ),
    "environment": lambda specs: make_app(specs, make_role(specs, env={"A": "1", "B": "", "C": "x=y z"})),
    "variables of TorchX set by the role": lambda specs: make_app(
        specs, make_role(specs, env={"TORCHX_RANK0_HOST": "mine", "TORCHX_IMAGE": "mine", "TORCHX_JOB_ID": "mine"})
    ),
    "macros in arguments": lambda specs: make_app(
        specs, make_role(specs, args=["${app_id}", "${replica_id}", "${img_root}/x", "${rank0_env}"], num_replicas=2)
    ),
    "macros in the environment": lambda specs: make_app(
        specs, make_role(specs, env={"ID": "${app_id}-${replica_id}", "D": "$$x"})
    ),
    "torchrun's idiom": lambda specs: make_app(
        specs,
        make_role(specs, entrypoint="bash", args=["-c", "torchrun --rdzv_endpoint $${${rank0_env}:=localhost}:29500"]),
    ),
    "macros in metadata": lambda specs: make_app(specs, make_role(specs, metadata={"a": ["${app_id}"]})),
    "what only looks like a macro": lambda specs: make_app(
        specs, make_role(specs, args=["${nothing}", "$", "${", "$1", "%s"])
    ),
    "half a cpu": lambda specs: _sized(specs, cpu=0.5),
    "no cpu": lambda specs: _sized(specs, cpu=0),
    "many cpus": lambda specs: _sized(specs, cpu=96),
    "no memory": lambda specs: _sized(specs, memMB=0),
    "much memory": lambda specs: _sized(specs, memMB=1_048_576),
    "cpu left open": lambda specs: _sized(specs, cpu=-1),
    "memory left open": lambda specs: _sized(specs, memMB=-1),
    "one gpu": lambda specs: _sized(specs, gpu=1),
    "eight gpus": lambda specs: _sized(specs, gpu=8),
    "capabilities and tags": lambda specs: _sized(specs, capabilities={"a": 1}, tags={"b": 2}),
    "elastic fabric": lambda specs: _sized(specs, devices={"vpc.amazonaws.com/efa": 4}),
    "neuron devices": lambda specs: _sized(specs, devices={"aws.amazon.com/neurondevice": 2}),
    "several devices, one unknown": lambda specs: _sized(
        specs, devices={"vpc.amazonaws.com/efa": 1, "no/such": 3, "aws.amazon.com/neurondevice": 1}
    ),
    "a named resource": lambda specs: make_app(specs, make_role(specs, resource=specs.resource(h="gpu.small"))),
    "a named resource of a cloud": lambda specs: make_app(
        specs, make_role(specs, resource=specs.resource(h="aws_p4d.24xlarge"))
    ),
    "a bind mount": lambda specs: _mounted(specs, "type=bind,src=/data,dst=/mnt/data"),
    "a bind mount to read": lambda specs: _mounted(specs, "type=bind,src=/data,dst=/mnt/data,readonly"),
    "a volume": lambda specs: _mounted(specs, "type=volume,src=models,dst=/models"),
    "a volume to read": lambda specs: _mounted(specs, "type=volume,source=models,target=/models,read_only"),
    "a device": lambda specs: _mounted(specs, "type=device,src=/dev/fuse"),
    "a device elsewhere, to read": lambda specs: _mounted(specs, "type=device,src=/dev/null,dst=/dev/x,perm=r"),
    "mounts of all kinds": lambda specs: _mounted(
        specs,
        "type=bind,src=/a,dst=/b",
        "type=volume,src=c,dst=/d",
        "type=device,src=/dev/e,dst=/dev/f",
        "type=bind,src=/g,dst=/h",
    ),
    "a mount beside named devices": lambda specs: make_app(
        specs,
        make_role(
            specs,
            mounts=[specs.DeviceMount("/dev/fuse", "/dev/fuse"), specs.BindMount("/a", "/b")],
            resource=specs.Resource(cpu=1, gpu=0, memMB=1, devices={"vpc.amazonaws.com/efa": 1}),
        ),
    ),
    "retries": lambda specs: make_app(specs, make_role(specs, max_retries=3)),
    "retries of a replica": lambda specs: make_app(
        specs, make_role(specs, max_retries=1, retry_policy=specs.RetryPolicy.REPLICA, num_replicas=2)
    ),
    "ports": lambda specs: make_app(
        specs, make_role(specs, port_map={"c10d": 29500, "tensorboard": 6006}, num_replicas=2)
    ),
    "a long name": lambda specs: make_app(specs, make_role(specs, "r" * 45), name="n" * 60),
    "a name with capitals and dots": lambda specs: make_app(specs, make_role(specs, "Tr_a.in-er"), name="My_App.v1"),
    "metadata of the app": lambda specs: (
        specs.AppDef(name="job", roles=[make_role(specs)], metadata={"team": "x"}),
        {},
    ),
    "privileged": lambda specs: make_app(specs, cfg={"privileged": True}),
    "env of the options": lambda specs: make_app(
        specs, make_role(specs, env={"A": "role"}), cfg={"env": {"A": "cfg", "B": "cfg"}}
    ),
    "copied variables": lambda specs: make_app(
        specs,
        make_role(specs, env={"COPIED_B": "role"}),
        cfg={"copy_env": ["COPIED_*", "NO_SUCH_*"], "env": {"COPIED_A": "cfg"}},
    ),
    "a role with an override": lambda specs: make_app(
        specs, make_role(specs, overrides={"image": lambda: "made:late"}, image="not made")
    ),
    "an entrypoint of a path": lambda specs: make_app(
        specs, make_role(specs, entrypoint="/usr/bin/env", args=["python3", "-V"])
    ),
}
