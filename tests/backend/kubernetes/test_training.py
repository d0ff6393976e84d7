"""Jobs of Kubeflow and Ray, made after the references of their APIs: none was recorded."""

import random

import pytest
from backend.kubernetes.samples import described, letters
from backend.kubernetes.tables import table
from support.odd_values import odd_document

from torchx_tui.backends.kubernetes.describe import describe
from torchx_tui.backends.kubernetes.job_kind import MAX_REPLICAS, JobFacts
from torchx_tui.backends.kubernetes.kinds.training import TRAINING
from torchx_tui.backends.kubernetes.listing import row_of

TRAIN, PYTORCH, MPI, RAY = TRAINING
TEMPLATE = {"spec": {"containers": [{"name": "pytorch", "image": "train:1"}]}}
METADATA = {"name": "j", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-11-26T14:00:00Z"}
SPECS = {
    TRAIN: {"trainer": {"numNodes": 2}},
    PYTORCH: {
        "pytorchReplicaSpecs": {"Master": {"template": TEMPLATE}, "Worker": {"replicas": 2, "template": TEMPLATE}}
    },
    MPI: {"mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 2}}},
    RAY: {
        "rayClusterSpec": {
            "headGroupSpec": {"template": TEMPLATE},
            "workerGroupSpecs": [{"groupName": "g", "replicas": 2}],
        }
    },
}


def condition(kind, **more):
    return {"conditions": [{"type": "Created", "status": "True"}, {"type": kind, "status": "True", **more}]}


def job(kind, status):
    return {"metadata": METADATA, "spec": SPECS[kind], "status": status}


def pod(name, phase, labels):
    status = {"phase": phase, "containerStatuses": [{"name": "pytorch", "state": {"running": {}}}]}
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": labels, "creationTimestamp": name}
    return {"metadata": metadata, "spec": TEMPLATE["spec"], "status": status}


def kubeflow(name, role, index, phase="Running"):
    named = {"job-name": "j", "replica-type": role, "replica-index": index}
    return pod(name, phase, {f"training.kubeflow.org/{key}": value for key, value in named.items()})


def ray(name, group):
    return pod(name, "Running", {"ray.io/cluster": "j-x", "ray.io/group": group})


@table("training.yaml", "states", "word status pods state replicas")
def test_state_and_replicas(word, status, pods, state, replicas):
    kind = next(one for one in TRAINING if one.word == word)
    made = [(ray if kind is RAY else kubeflow)(*one) for one in pods]
    response = described(kind, {"job": job(kind, status), "pods": made, "events": []})
    assert (response.state.name, letters(response)) == (state, replicas)
    row = row_of(kind, job(kind, status))
    assert (row.app_id, row.replicas_wanted) == (f"ns:{kind.prefix}:j", len(replicas))


def test_message_of_a_failed_job():
    found = {"job": job(MPI, condition("Failed", message="launcher failed")), "pods": [], "events": []}
    assert described(MPI, found).msg == "launcher failed"


@pytest.mark.parametrize(("kind", "path"), [(PYTORCH, ["runPolicy", "suspend"]), (RAY, ["suspend"])])
def test_cancelled_job_is_suspended(kind, path):
    made = kind.cancelled(job(kind, condition("Running")))
    place = made["spec"]
    for name in path:
        place = place[name]
    assert place is True
    made["status"] = condition("Suspended")
    assert kind.state(made).name == "CANCELLED"


@pytest.mark.parametrize("kind", TRAINING, ids=lambda kind: kind.word)
def test_odd_jobs(kind):
    chance = random.Random(1)
    for _ in range(300):
        made = kind.checked(odd_document(chance, job(kind, condition("Running"))))
        if made is not None:
            made["metadata"].setdefault("namespace", "ns")
            response = describe(kind, JobFacts(made, {}, {}, None), 1.8e9)
            assert sum(len(role.replicas) for role in response.roles_statuses) <= MAX_REPLICAS
            assert row_of(kind, made).app_id
