"""Findings before a launch and on a server; what this user may not read is skipped."""

import json

import pytest
from backend.kubernetes.apps import role
from backend.kubernetes.tables import table
from support.scripted_server import status

from torchx_tui.backends.kube.rights import may
from torchx_tui.backends.kubernetes.preflight import (
    cancel_right,
    known_values,
    launch_findings,
    server_findings,
)
from torchx_tui.backends.kubernetes.request import KubernetesOpts
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO as KIND
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.workspace import Workspace

VOLCANO = "/apis/batch.volcano.sh/v1alpha1"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
NAMESPACE = "/api/v1/namespaces/default"
QUEUE = f"{QUEUES}/main"
CANCEL = cancel_right(KIND)
NODES = "/api/v1/nodes"
PODS = f"{NAMESPACE}/pods"
CONTROLLER = "/api/v1/namespaces/volcano-system/pods"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FORBIDDEN = status(
    403,
    "Forbidden",
    'things is forbidden: User "alice" cannot get resource "things" in API group "" at the cluster scope',
)


@pytest.fixture
def server(server):
    """Return a server on which nothing is missing."""
    for path in (VOLCANO, NAMESPACE, QUEUE):
        server.gives(path, {"status": {}})
    return server


def found(server, *roles, name="job", image_repo="", queue="main", **options):
    """Return the level and text of each finding on a launch."""
    opts = KubernetesOpts(queue=queue, **options)
    findings = launch_findings(server.api(), KIND, AppDef(name, list(roles) or [role()]), opts, image_repo)
    return [(one.level, f"{one.what}: {one.hint}") for one in findings]


def set_answer(server, ask, answer):
    """Set the answer to a request, whose path may be a name of this file."""
    method, _, path = ask.partition(" ")
    answers = {"lost": lambda asked: None, "forbidden": FORBIDDEN}
    server.answers.pop((method, globals().get(path, path)), None)
    if answer is not None:
        server.answers[method, globals().get(path, path)] = answers.get(str(answer)) or tuple(answer)


def assert_found(findings, *expected):
    assert [level for level, _ in findings] == [level for level, _ in expected]
    for (_, text), (_, words) in zip(findings, expected, strict=True):
        assert words in text


def test_nothing_is_missing(server):
    assert found(server, role("a", num_replicas=8), role("b")) == []
    # One pod of each role is tried, and none created.
    tried = server.requests(path=PODS)
    assert [one.params for one in tried] == [{"dryRun": "All"}] * 2
    assert [one.body["metadata"]["name"].split("-", 2)[2] for one in tried] == ["a-0-0", "b-0-0"]


@table("preflight.yaml", "launch", "ask answer level words")
def test_answer_of_the_server(server, ask, answer, level, words):
    set_answer(server, ask, answer)
    assert_found(found(server), (level, words))


@table("preflight.yaml", "requests", "fields options level words")
def test_request_that_cannot_run(server, fields, options, level, words):
    assert_found(found(server, role(**fields), **options), *([(level, words)] if level else []))


def test_request_that_is_too_large(server):
    made = role(env={"LONG": "x" * 20_000}, num_replicas=100)
    assert_found(found(server, made), ("error", "too large for the server with its 100 repli"))


def test_workspace_needs_a_repository(server):
    made = role(workspace=Workspace({"/home/me": ""}))
    assert_found(found(server, made), ("error", "set image_repo"))
    assert found(server, made, image_repo="example.com/x") == []


def test_tried_pod_has_the_priority_class_and_the_account(server):
    assert found(server, priority_class="high", service_account="me") == []
    (spec,) = [one.body["spec"] for one in server.requests(path=PODS)]
    assert (spec["priorityClassName"], spec["serviceAccountName"]) == ("high", "me")


def in_zone():
    return role(resource=Resource(cpu=1, gpu=0, memMB=64, capabilities={"example.com/zone": "a", "example.com/b": "c"}))


@pytest.mark.parametrize(("items", "levels"), [([], ["warning"]), ([{}], [])])
def test_labels_of_nodes(server, items, levels):
    server.lists(NODES, *items)
    assert [level for level, _ in found(server, in_zone())] == levels
    (asked,) = [one.params for one in server.requests(path=NODES)]
    assert asked == {"labelSelector": "example.com/zone=a,example.com/b=c", "limit": "1"}


def test_forbidden_checks_are_skipped(server):
    for path in (QUEUE, NODES):
        server.answers["GET", path] = FORBIDDEN
    server.answers["POST", PODS] = FORBIDDEN
    assert found(server, in_zone(), service_account="me") == []


def test_script_outside_the_workspace(server, tmp_path):
    made = role(workspace=Workspace({str(tmp_path): ""}))
    made.entrypoint, made.args = "python", ["train.py"]
    assert_found(found(server, made, image_repo="example.com/x"), ("warning", "train.py is not in the workspace"))
    (tmp_path / "train.py").touch()
    assert found(server, made, image_repo="example.com/x") == []


# A server, whatever is launched


def named(*names):
    return [{"metadata": {"name": name}} for name in names]


@pytest.fixture
def sound(server):
    server.gives("/version", {"gitVersion": "v1.33"})
    server.lists(QUEUES, *named("main", "other", "odd\x1b[2J"))
    server.answers["POST", REVIEW] = 201, {"status": {"allowed": True}}
    return server


def of_server(server, namespace="default"):
    api = server.api()
    return [(one.level, one.what) for one in server_findings(api, KIND, namespace, set())]


def test_server_findings(sound):
    fine = [("ok", f"Kubernetes v1.33 at {sound.url}"), ("ok", "Volcano's jobs, queues main, other")]
    assert of_server(sound) == of_server(sound, "") == fine
    (asked, _) = sound.requests(path=CONTROLLER)
    assert asked.params == {"labelSelector": "app=volcano-controller"}
    stopped = ("warning", "Volcano's controller is not running: jobs stay as they are")
    for phases, more in (([], []), (["Pending", "Running"], []), (["Pending", "Failed"], [stopped])):
        sound.lists(CONTROLLER, *({"status": {"phase": phase}} for phase in phases))
        assert of_server(sound) == fine + more


@table("preflight.yaml", "server", "ask answer place level words")
def test_server_findings_of_an_answer(sound, ask, answer, place, level, words):
    set_answer(sound, ask, answer)
    findings = of_server(sound)
    assert (findings[place][0], findings[place][1][: len(words)]) == (level, words)
    assert len(findings) == (1 if (level, place) == ("error", 0) else max(2, place + 1))


def test_missing_rights(sound):
    asked = []

    def review(one):
        asked.append(one.body["spec"]["resourceAttributes"])
        return 201, {"status": {"allowed": asked[-1]["verb"] not in ("update", "get")}}

    sound.answers["POST", REVIEW] = review
    api = sound.api()
    missing = set()
    assert [(one.level, one.what) for one in server_findings(api, KIND, "default", missing)][2:] == [
        ("warning", "you may not get pods/log: logs are not shown"),
        ("warning", "you may not update jobs.batch.volcano.sh/status: nothing can be cancelled"),
        ("warning", "you may not get pods/exec: no shell can be opened"),
    ]
    assert [" ".join(one.get(name, "-") for name in ("verb", "group", "resource", "subresource")) for one in asked] == [
        "list batch.volcano.sh jobs -",
        "list - pods -",
        "get - pods log",
        "create batch.volcano.sh jobs -",
        "update batch.volcano.sh jobs status",
        "delete batch.volcano.sh jobs -",
        "get - pods exec",
    ]
    assert {one["namespace"] for one in asked} == {"default"}
    assert {right.verb for right in missing} == {"update", "get"}


def test_unanswered_review_counts_as_a_right(sound):
    for answer in (FORBIDDEN, (201, {}), (201, {"status": None})):
        sound.answers["POST", REVIEW] = answer
        assert may(sound.api(), CANCEL, "default")
    assert may(sound.api(), CANCEL, "")
    assert "namespace" not in sound.asked[-1].body["spec"]["resourceAttributes"]


@pytest.mark.parametrize(
    ("version", "asked"),
    [("v1.34.2", ["get"]), ("v1.35.0-eks", ["get", "create"]), ("v1.36", ["get", "create"]), ("?", ["get"])],
)
def test_exec_needs_create_from_kubernetes_1_35_on(sound, version, asked):
    sound.gives("/version", {"gitVersion": version})
    verbs = []

    def review(one):
        wanted = one.body["spec"]["resourceAttributes"]
        if wanted.get("subresource") == "exec":
            verbs.append(wanted["verb"])
        return 201, {"status": {"allowed": wanted.get("subresource") != "exec"}}

    sound.answers["POST", REVIEW] = review
    warnings = [what for level, what in of_server(sound) if level == "warning"]
    assert (verbs, warnings) == (asked, [f"you may not {verb} pods/exec: no shell can be opened" for verb in asked])


def test_values_of_options(server, tmp_path, monkeypatch):
    contexts = [{"name": name, "context": {"namespace": "space"}} for name in ("here", "there")]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({"contexts": contexts}))
    monkeypatch.setenv("KUBECONFIG", str(path))
    server.lists("/api/v1/namespaces", *named("default", "od\x1bd"))
    server.answers["GET", QUEUES] = FORBIDDEN
    server.lists("/apis/scheduling.k8s.io/v1/priorityclasses")
    server.lists(f"{NAMESPACE}/serviceaccounts", *named("me"))
    in_file = {"context": ["here", "there"]}
    assert known_values(server.api()) == {**in_file, "namespace": ["default"], "service_account": ["me"]}
    assert {one.params["limit"] for one in server.asked} == {"200"}
    server.answers["GET", "/api/v1/namespaces"] = lambda asked: None
    assert known_values(server.api()) == in_file
    path.write_text("[1]")
    assert known_values(server.api()) == {}
