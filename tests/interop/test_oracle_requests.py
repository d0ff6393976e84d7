"""What Docker and Kubernetes are asked for, held against TorchX's, of thousands of apps made at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.app_defs import App, apps
from interop.oracle import Refused, cases, hold, names_of, outcome, theirs
from interop.plain_data import built
from interop.release_0_7 import ADDED_LABELS
from interop.releases import pinned

import torchx_tui.specs as our_specs
from torchx_tui.backends.docker import labels as docker_labels
from torchx_tui.backends.docker import scheduler as docker_scheduler
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.kubernetes import labels as kubernetes_labels
from torchx_tui.backends.kubernetes.request import manifest

DOCKER, KUBERNETES = "docker requests", "kubernetes manifests"
APP_NAMES = ["job", "My_Job.v1", "n" * 40, "x_________________"]
ROLE_NAMES = ["trainer", "ps", "r-1", "R_x", "r" * 45, "r" * 35 + "x"]
ENTRYPOINTS = ["sh", "/bin/sh", "bin/${replica_id}"]
FEW = {"num_replicas": st.sampled_from([1, 1, 2, 3])}
DOCKER_CFGS = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(), "env": st.sampled_from([{}, {"A": "cfg", "C": "cfg"}]),
        "copy_env": st.sampled_from([["COPIED_*"], ["COPIED_A", "NO_SUCH"], []]),
    },
)  # fmt: skip
KUBERNETES_CFGS = st.fixed_dictionaries(
    {"service_account": st.sampled_from([None, "", "account"])},
    optional={
        "priority_class": st.sampled_from([None, "high"]), "reserved_millicpu": st.sampled_from([0, 100, 9000]),
        "reserved_memmb": st.sampled_from([0, 1024]), "efa_device_count": st.sampled_from([None, 0, 1, 32]),
    },
)  # fmt: skip


@pytest.fixture
def docker(torchx: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = theirs("torchx.schedulers.docker_scheduler")
    monkeypatch.setattr(module, "make_unique", pinned)
    monkeypatch.setattr(docker_scheduler, "make_unique", pinned)
    for name in ("COPIED_A", "COPIED_B"):
        monkeypatch.setenv(name, "from here")
    return module.create_scheduler("torchx"), DockerScheduler("torchx")


@pytest.fixture
def kubernetes(torchx: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = theirs("torchx.schedulers.kubernetes_scheduler")
    monkeypatch.setattr(module, "make_unique", pinned)
    monkeypatch.setattr(manifest, "make_unique", pinned)
    return module


def containers(specs: Any, scheduler: Any, app: App, cfg: dict[str, Any], *, whole: bool = False) -> Any:
    """Return the containers of an app, but for the labels and ports that only ours have, and whose version it is."""
    job = scheduler.submit_dryrun(built(specs, app), cfg).request
    made = []
    for one in job.containers:
        kwargs = {**one.kwargs, "labels": dict(one.kwargs["labels"])}
        kwargs["labels"].pop(docker_labels.VERSION)
        if not whole:
            kwargs.pop("ports", None)
            kwargs["labels"] = {name: text for name, text in kwargs["labels"].items() if name not in ADDED_LABELS}
        kwargs["environment"] = dict(sorted(kwargs["environment"].items()))
        made.append({"image": one.image, "command": one.command, **dict(sorted(kwargs.items()))})
    return [job.app_id, *made]


@given(apps(APP_NAMES, ROLE_NAMES, ENTRYPOINTS), DOCKER_CFGS)
@cases(1000)
def test_docker(docker: Any, app: App, cfg: dict[str, Any]) -> None:
    their_scheduler, our_scheduler = docker

    def explain(their: Any, our: Any) -> str | None:
        if isinstance(our, Refused):
            short = [role["name"][:30] for role in app["roles"]]
            return "roles of one name" if len(set(short)) < len(short) else None
        return after(undoing_docker(app, their, our), their, our)

    their_request = outcome(lambda: containers(theirs("torchx.specs"), their_scheduler, app, cfg))
    our_request = outcome(lambda: containers(our_specs, our_scheduler, app, cfg))
    hold(DOCKER, their_request, our_request, explain, (app, cfg))


def after(undoing: Iterator[str], their: Any, our: Any) -> str | None:
    """Return the last difference that had to be undone for both to be equal."""
    return next((name for name in undoing if repr(their) == repr(our)), None)


def undoing_docker(app: App, their: Any, our: Any) -> Iterator[str]:
    """Undo in TorchX's containers what is known to differ, and name it."""
    pairs = list(zip(their[1:], our[1:], strict=True))
    for one, _ in pairs:
        one["command"][0] = one["command"][0].replace("${replica_id}", one["labels"][docker_labels.REPLICA_ID])
    yield "macros in the entrypoint"
    for one, _ in pairs:
        one["environment"]["TORCHX_RANK0_HOST"] = their[1]["name"]
    yield "the first host"
    for one, other in pairs:
        if len(one["hostname"]) > 63 >= len(other["hostname"]):
            one["hostname"] = other["hostname"]
    yield "long host names"


def job(specs: Any, app_to_resource: Callable[..., Any], app: App, cfg: dict[str, Any]) -> Any:
    return app_to_resource(built(specs, app), "default", **cfg)


@given(apps(APP_NAMES[:3], ROLE_NAMES[:4], ENTRYPOINTS, FEW), KUBERNETES_CFGS)
@cases(1000)
@pytest.mark.filterwarnings("ignore")
def test_kubernetes(kubernetes: Any, app: App, cfg: dict[str, Any]) -> None:
    def their_job() -> Any:
        return kubernetes.sanitize_for_serialization(job(theirs("torchx.specs"), kubernetes.app_to_resource, app, cfg))

    def explain(their: Any, our: Any) -> str | None:
        if isinstance(their, Refused) or isinstance(our, Refused):
            return None
        return after(undoing_kubernetes(their, our), their, our)

    our_job = outcome(lambda: in_order(job(our_specs, manifest.app_to_resource, app, cfg)))
    hold(KUBERNETES, outcome(lambda: in_order(their_job())), our_job, explain, (app, cfg))


def in_order(value: Any) -> Any:
    """Return plain data with the keys of mappings in one order, less whose version it is."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value) if key != kubernetes_labels.VERSION}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def pods(made: Any) -> list[Any]:
    return [task["template"] for task in made["spec"]["tasks"]]


def undoing_kubernetes(their: Any, our: Any) -> Iterator[str]:
    """Undo in TorchX's job what is known to differ, and name it."""
    for pod in pods(their):
        command = pod["spec"]["containers"][0]["command"]
        command[0] = command[0].replace("${replica_id}", pod["metadata"]["labels"][kubernetes_labels.REPLICA_ID])
    yield "macros in the entrypoint"
    for pod in pods(their):
        container = pod["spec"]["containers"][0]
        container["command"] = [text.replace("VC_R-1_0", "VC_R_1_0") for text in container["command"]]
        for variable in container["env"]:
            variable["value"] = variable.get("value", "").replace("VC_R-1_0", "VC_R_1_0")
    yield "the first host"
    for pod in pods(their):
        texts = pod["metadata"]["labels"]
        texts.update({name: text.strip("._-") for name, text in texts.items()})
    yield "ends of labels"


def one_role(name: str = "r", **changes: Any) -> App:
    return {"name": "job", "roles": [{"name": name, "entrypoint": "e", **changes}]}


def labels_of(one: Any) -> list[str]:
    return sorted(set(one["labels"]) & ADDED_LABELS)


# Of each entry: the app, what is looked at in the last container, what TorchX has and what ours do.
IN_DOCKER: dict[str, tuple[App, Callable[[Any], Any], str, str]] = {
    "macros in the entrypoint": (
        one_role(entrypoint="b/${replica_id}"), lambda one: one["command"], "['b/${replica_id}']", "['b/0']"
    ),
    "the first host": (
        {**one_role(), "name": "x_________________"},
        lambda one: one["environment"]["TORCHX_RANK0_HOST"] == one["name"], "False", "True",
    ),
    "long host names": (
        {**one_role("r" * 40, num_replicas=101), "name": "n" * 40}, lambda one: len(one["hostname"]), "65", "63"
    ),
    "roles of one name": (
        {"name": "job", "roles": [{"name": "r" * 30 + end, "entrypoint": "e"} for end in "ab"]},
        lambda one: one["name"][-5:], "'rrr-0'", "AppDefError",
    ),
    "labels": (one_role(), lambda one: len(labels_of(one)), "0", "6"),
    "published ports": (
        one_role(port_map={"http": 80}), lambda one: one.get("ports"), "None", "{'80/tcp': ('127.0.0.1', None)}"
    ),
}  # fmt: skip
IN_KUBERNETES: dict[str, tuple[App, Callable[[Any], Any], str, str]] = {
    "macros in the entrypoint": (
        one_role(entrypoint="b/${replica_id}"), lambda pod: pod["spec"]["containers"][0]["command"],
        "['b/${replica_id}']", "['b/0']",
    ),
    "the first host": (
        one_role("a-b", num_replicas=2, args=["${rank0_env}"]), lambda pod: pod["spec"]["containers"][0]["command"],
        "['e', 'VC_A-B_0_HOSTS']", "['e', 'VC_A_B_0_HOSTS']",
    ),
    "ends of labels": (
        one_role("a-"), lambda pod: pod["metadata"]["labels"][kubernetes_labels.ROLE_NAME], "'a.'", "'a'"
    ),
    "retries of a role": (
        one_role(max_retries=1, retry_policy="ROLE"), lambda pod: len(pod["spec"]["containers"]), "KeyError", "1"
    ),
    "nodes by their labels": (
        one_role(resource={"cpu": 1, "gpu": 0, "capabilities": {"topology.kubernetes.io/zone": "a"}}),
        lambda pod: pod["spec"].get("nodeSelector"), "{}", "{'topology.kubernetes.io/zone': 'a'}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", names_of(DOCKER))
def test_each_difference_of_docker_is_there(docker: Any, name: str) -> None:
    app, look, *expected = IN_DOCKER[name]
    for specs, scheduler, text in zip((theirs("torchx.specs"), our_specs), docker, expected, strict=True):
        assert repr(outcome(lambda: look(containers(specs, scheduler, app, {}, whole=True)[-1]))) == text  # noqa: B023


@pytest.mark.parametrize("name", names_of(KUBERNETES))
def test_each_difference_of_kubernetes_is_there(kubernetes: Any, name: str) -> None:
    app, look, their_text, our_text = IN_KUBERNETES[name]

    def their_pod() -> Any:
        made = job(theirs("torchx.specs"), kubernetes.app_to_resource, app, {"service_account": None})
        return pods(kubernetes.sanitize_for_serialization(made))[-1]

    def our_pod() -> Any:
        return pods(job(our_specs, manifest.app_to_resource, app, {"service_account": None}))[-1]

    assert repr(outcome(lambda: look(their_pod()))) == their_text
    assert repr(outcome(lambda: look(our_pod()))) == our_text


def test_no_example_is_left_over() -> None:
    assert set(IN_DOCKER) == set(names_of(DOCKER))
    assert set(IN_KUBERNETES) == set(names_of(KUBERNETES))
