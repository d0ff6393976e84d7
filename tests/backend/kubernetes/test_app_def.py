"""The AppDef of a job: kept by us, or rebuilt from anybody's tasks."""

from typing import Any

import pytest
from backend.kubernetes.apps import request, resource, role
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends.kube.overlay import get_overlay
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.app_def import read_app_def
from torchx_tui.backends.kubernetes.request import KubernetesOpts, make_request
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.kubernetes.volcano.roles import roles_of
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import MISSING


def rebuilt(*roles):
    notes = []
    return roles_of(resource(*roles), notes), notes


def test_the_app_def_comes_back_from_its_annotation():
    app = AppDef(
        "My_Job",
        [
            role(
                "Tr_a.in",
                env={"A": "${app_id}"},
                port_map={"tb": 6006},
                max_retries=2,
                min_replicas=1,
                mounts=[BindMount("/a", "/b", True), VolumeMount("v", "/c"), DeviceMount("/dev/fuse", "/dev/fuse")],
                metadata={"kubernetes": {"spec": {"volumes": ({"name": "x"},)}}},
            )
        ],
        metadata={"team": "z"},
    )
    job = make_request(app, "mine", KubernetesOpts(queue="q"), VOLCANO).resource
    notes = []
    assert read_app_def(job, notes) == app
    assert notes == []


def test_what_a_launch_adds_is_not_kept():
    kept: Any = read_app_def(request(role(env={"TORCHX_JOB_ID": "x", "A": "1"})).resource, [])
    assert kept.roles[0].env == {"A": "1"}


def test_a_long_app_def_is_left_out_and_said_to_be():
    job = request(role(env={"LONG": "x" * 140_000})).resource
    assert labels.APP_DEF not in job["metadata"]["annotations"]
    notes = []
    assert read_app_def(job, notes) is None
    (note,) = notes
    assert "137 KB" in note
    assert "128 KB" in note


def test_jobs_of_others_have_none():
    notes = []
    assert read_app_def({"metadata": {"name": "x"}}, notes) is None
    assert read_app_def({"metadata": {"annotations": {labels.APP_DEF: "{"}}}, notes) is None
    assert len(notes) == 1
    assert "cannot be read" in notes[0]


def test_roles_are_rebuilt_from_the_tasks():
    given = [
        role(
            "trainer",
            num_replicas=3,
            args=["-c", "echo $HOME"],
            env={"A": "1", "IP": "[FIELD_PATH]status.podIP"},
            port_map={"tb": 6006},
            resource=Resource(
                cpu=2,
                gpu=1,
                memMB=3000,
                capabilities={"topology.kubernetes.io/zone": "a"},
                devices={"vpc.amazonaws.com/efa": 4},
            ),
            mounts=[
                BindMount("/a", "/b", True),
                VolumeMount("claim", "/c"),
                DeviceMount("/dev/fuse", "/dev/fuse"),
                DeviceMount("/dev/null", "/dev/x", "r"),
            ],
        ),
        role("reader", resource=Resource(cpu=-1, gpu=0, memMB=-1)),
    ]
    assert rebuilt(*given) == (given, [])


def test_retries_of_foreign_tasks_are_noted():
    assert rebuilt(role("a", max_retries=2), role("b")) == (
        [role("a"), role("b")],
        ["a: its retries are not launched again"],
    )


def test_fields_that_a_role_lacks_become_its_overlay():
    beyond = {"hostNetwork": True, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    job = resource(role(metadata={"kubernetes": {"spec": beyond}}))
    (again,) = roles_of(job)
    assert get_overlay(again, "kubernetes", "V1Pod") == {"spec": beyond}
    assert beyond.items() <= resource(again)["spec"]["tasks"][0]["template"]["spec"].items()


def test_differing_replicas_and_other_containers_are_noted():
    job = resource(role(num_replicas=2, args=["${replica_id}"]))
    job["spec"]["tasks"][0]["template"]["spec"]["containers"].append({"name": "side"})
    notes = []
    (found,) = roles_of(job, notes)
    assert (found.num_replicas, found.args) == (2, ["0"])
    assert notes == [
        "worker: the arguments of its replicas differ: those of the first are used for all",
        "worker: only its main container is launched again",
    ]


@given(st.text(alphabet="$ax{}_pid", max_size=12))
def test_texts_come_out_as_they_are_when_they_are_launched_again(text):
    job = resource(role(args=["${replica_id}"]))
    command = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    command["command"] = ["sh", text, "$$", "${app_id}"]
    (again,) = roles_of(job)
    container = resource(again)["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sh", text, "$$", "${app_id}"]


def foreign(**container):
    """Return a job that nobody here made."""
    spec = {"containers": [{"name": "main", "image": "busybox", **container}]}
    task = {"name": "worker", "replicas": 3, "template": {"spec": spec}}
    return {"metadata": {"name": "x"}, "spec": {"tasks": [task]}}


def test_a_foreign_job():
    notes = []
    job = foreign(
        args=["--x"],
        env=[{"name": "A"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        volumeMounts=[{"name": "config", "mountPath": "/etc/x"}],
        resources={"limits": {"memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}},
    )
    (found,) = roles_of(job, notes)
    assert (found.name, found.num_replicas, found.image) == ("worker", 3, "busybox")
    assert (found.entrypoint, found.args) == (MISSING, ["--x"])
    assert found.env == {"A": ""}
    assert found.resource == Resource(cpu=0.25, gpu=0, memMB=1074)  # type: ignore[arg-type]
    assert [note.split(":")[0] for note in notes] == ["worker", "worker"]
    assert "the variable S comes from a secret" in notes[0]
    assert "/etc/x" in notes[1]


@pytest.mark.parametrize("spec", [{}, {"tasks": []}, {"tasks": [{}]}, {"tasks": [{"template": {"spec": {}}}]}])
def test_half_a_job_is_no_error(spec):
    found = roles_of({"metadata": {}, "spec": spec})
    assert [one.entrypoint for one in found] == [MISSING] * len(spec.get("tasks", []))
