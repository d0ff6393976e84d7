"""What the tests of requests launch."""

from typing import Any

from torchx_tui.backends.kubernetes.request import KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.kubernetes.volcano.manifest import app_to_resource
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role


def role(name="worker", **changes):
    changes.setdefault("image", "busybox:local")
    changes.setdefault("entrypoint", "sh")
    changes.setdefault("args", ["-c", "exit 0"])
    changes.setdefault("resource", Resource(cpu=1, gpu=0, memMB=64))
    return Role(name, **changes)


def resource(*roles, name="job", **options):
    """Return the job of an app with these roles."""
    return app_to_resource(AppDef(name, list(roles)), options.pop("queue", "default"), None, **options)


def request(*roles, name="job", **cfg):
    """Return the request of an app with these roles."""
    given: dict[str, Any] = {"queue": "default", **cfg}
    return make_request(AppDef(name, list(roles)), "mine", KubernetesOpts(**given), VOLCANO)


def pods(job):
    """Return the pod of each task of a job."""
    return [task["template"] for task in job["spec"]["tasks"]]


def container(job, place=0):
    """Return what runs in the pod of a task."""
    return pods(job)[place]["spec"]["containers"][0]


def env(job, place=0):
    """Return the variables of the pod of a task."""
    return {one["name"]: one["value"] for one in container(job, place)["env"] if "value" in one}
