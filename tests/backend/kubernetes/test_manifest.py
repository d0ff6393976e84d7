"""The job that an app becomes, where TorchX's own does not say it (see tests/interop), and the pods as models."""

import json
import re

import pytest
from backend.kubernetes.apps import container, env, pods, resource, role

from torchx_tui.backends.kube import overlay
from torchx_tui.backends.kube.objects import sanitize_for_serialization
from torchx_tui.backends.kube.overlay import JOIN
from torchx_tui.backends.kube.pod_template import make_pod, role_to_pod
from torchx_tui.backends.kubernetes.labels import pod_labels
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, RetryPolicy, Role


def policies(job):
    """Return the actions of each task; None where it has no policies."""
    tasks = job["spec"]["tasks"]
    return [{one["action"] for one in task["policies"]} if "policies" in task else None for task in tasks]


def test_one_task_a_replica_each_with_its_own_arguments():
    job = resource(
        role("a", num_replicas=2, args=["${replica_id}", "${app_id}"]), role("b", entrypoint="/${replica_id}")
    )
    name = job["metadata"]["name"]
    assert [task["name"] for task in job["spec"]["tasks"]] == ["a-0", "a-1", "b-0"]
    assert container(job, 1)["command"] == ["sh", "1", name]
    assert container(job, 2)["command"][0] == "/0"


def test_the_first_host_is_found_by_a_variable_that_volcano_sets():
    job = resource(role("Lead-er", num_replicas=2, args=["${rank0_env}"]), role("b", args=["${rank0_env}"]))
    assert [container(job, place)["command"][1] for place in range(3)] == [
        "TORCHX_RANK0_HOST",
        "VC_LEAD_ER_0_HOSTS",
        "VC_LEAD_ER_0_HOSTS",
    ]
    assert env(job)["TORCHX_RANK0_HOST"] == "localhost"
    assert "TORCHX_RANK0_HOST" not in env(job, 1)


def test_retries():
    some = {"max_retries": 2, "num_replicas": 1}
    application = resource(role("a", **some), role("b", max_retries=1))
    assert application["spec"]["maxRetry"] == 1
    assert policies(application) == [{"RestartJob"}] * 2
    assert policies(resource(role(retry_policy=RetryPolicy.REPLICA, **some))) == [set()]
    assert policies(resource(role())) == [None]


def test_a_role_that_is_started_anew_by_itself():
    alone = role("a", max_retries=2, retry_policy=RetryPolicy.ROLE, num_replicas=2)
    assert policies(resource(alone)) == [{"RestartJob"}] * 2
    job = resource(alone, role("b"))
    assert policies(job) == [{"RestartTask"}, {"RestartTask"}, None]
    assert {one["event"] for one in job["spec"]["tasks"][0]["policies"]} == {"PodEvicted", "PodFailed"}


def test_capabilities_choose_nodes_by_label():
    capabilities = {
        "node.kubernetes.io/instance-type": "p4d",
        "topology.kubernetes.io/zone": "a",
        "example.com/fast": True,
        "example.com/generation": 3,
        "example.com/none": None,
        "gpu_memory": "80",
        "Not A/label": "x",
    }
    job = resource(role(resource=Resource(cpu=1, gpu=0, memMB=64, capabilities=capabilities)))
    assert pods(job)[0]["spec"]["nodeSelector"] == {
        "node.kubernetes.io/instance-type": "p4d",
        "topology.kubernetes.io/zone": "a",
        "example.com/fast": "true",
        "example.com/generation": "3",
    }


def test_what_an_overlay_adds_is_there_and_the_labels_stay():
    laid_over = {
        "metadata": {"labels": {"team": "x", "torchx.pytorch.org/role-name": "other"}},
        "spec": {
            "hostNetwork": True,
            "restartPolicy": None,
            JOIN("containers", on="name"): [{"name": "trainer-${replica_id}", "workingDir": "/${replica_id}"}],
        },
    }
    job = resource(role("trainer", num_replicas=2, metadata={"kubernetes": {"V1Pod": laid_over}}))
    pod = pods(job)[1]
    assert pod["metadata"]["labels"]["team"] == "x"
    assert pod["metadata"]["labels"]["torchx.pytorch.org/role-name"] == "trainer"
    assert pod["spec"]["hostNetwork"] is True
    assert "restartPolicy" not in pod["spec"]
    assert [one["name"] for one in pod["spec"]["containers"]] == ["trainer-1"]
    assert pod["spec"]["containers"][0]["workingDir"] == "/1"


def test_a_file_of_an_overlay_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "overlay.yaml"
    path.write_text("spec: {tolerations: [{key: '$$x-$y-${replica_id}'}]}")
    read = []
    original = overlay.read_overlay
    monkeypatch.setattr(overlay, "read_overlay", lambda place: read.append(place) or original(place))
    job = resource(role(num_replicas=3, metadata={"kubernetes": str(path)}))
    assert len(read) == 1
    # The macros are replaced, and nothing else: a sidecar may have a shell's script.
    found = [pod["spec"]["tolerations"][0]["key"] for pod in pods(job)]
    assert found == [f"$$x-$y-{number}" for number in range(3)]


@pytest.mark.parametrize("what", [{"spec": None}, {"spec": 3}, {"metadata": [1]}, "/no/such/overlay.yaml"])
def test_an_overlay_that_does_not_fit_is_refused_with_its_role(what):
    with pytest.raises(AppDefError, match=r"Role worker: The overlay"):
        resource(role(metadata={"kubernetes": what}))


def test_an_app_is_not_changed():
    app = AppDef("job", [role(num_replicas=2, env={"A": "${replica_id}"}, metadata={"kubernetes": {"spec": {"x": 1}}})])
    before = repr(app)
    resource(*app.roles)
    assert repr(app) == before


def test_an_app_without_roles_is_refused():
    with pytest.raises(AppDefError, match="has no roles"):
        resource()


@pytest.mark.parametrize(
    ("text", "value"),
    [("a b", "a.b"), ("-a-", "a"), ("ü", ""), ("x" * 80, "x" * 63), ("a" * 62 + "-b", "a" * 62), ("A.b_c", "A.b_c")],
)
def test_labels_of_odd_names(text, value):
    found = pod_labels(AppDef(text), 1, Role(text, ""), 2, "job-x")
    assert found["torchx.pytorch.org/role-name"] == found["app.kubernetes.io/name"] == value
    assert found["torchx.pytorch.org/replica-id"] == "2"
    assert found["app.kubernetes.io/instance"] == "job-x"
    assert "app.kubernetes.io/instance" not in pod_labels(AppDef(text), 1, Role(text, ""), 2)


def test_a_pod_as_a_model_is_the_pod():
    made = role(
        port_map={"tb": 6006},
        env={"A": "1", "IP": "[FIELD_PATH]status.podIP"},
        resource=Resource(cpu=2, gpu=1, memMB=4000, devices={"vpc.amazonaws.com/efa": 1}),
        mounts=[BindMount("/a", "/b", True), VolumeMount("v", "/c"), DeviceMount("/dev/fuse", "/dev/fuse", "r")],
    )
    model = role_to_pod("worker-0", made, "account", efa_device_count=4)
    assert model.spec is not None
    assert model.spec.containers[0].name == "worker-0"
    assert model.spec.service_account_name == "account"
    plain = json.loads(json.dumps(sanitize_for_serialization(model)))
    assert plain == make_pod("worker-0", made, "account", efa_device_count=4)


def test_models_within_plain_data_become_plain():
    from kubernetes.client import V1Toleration

    job = resource(role(metadata={"kubernetes": {"spec": {"tolerations": [V1Toleration(key="gpu")]}}}))
    assert pods(job)[0]["spec"]["tolerations"] == [{"key": "gpu"}]
    assert json.dumps(job)


def test_names_are_unique_and_what_a_server_takes():
    names = [resource(role(), name="My_App.v1")["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"myappv1-[a-z][a-z0-9]+", name) for name in names)
