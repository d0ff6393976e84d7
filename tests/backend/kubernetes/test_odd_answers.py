"""Answers whose fields are missing, of another type, or hostile: one bad object costs one row."""

import copy
import json
import random

import pytest
from backend.kubernetes.samples import all_samples
from backend.kubernetes.tables import documents
from support.odd_values import odd_document, odd_value
from support.scripted_server import Stream, scripted_server
from support.waiting import wait_until

from torchx_tui.backends.kube.objects import checked_event, checked_pod, pods_path
from torchx_tui.backends.kube.pods import seconds_of
from torchx_tui.backends.kube.reflector import Reflector
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.describe import by_object, describe
from torchx_tui.backends.kubernetes.job_kind import CHILDREN, MAX_REPLICAS, JobFacts
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.found import ServerKinds
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.kinds.kueue import queue_reason, read_workload
from torchx_tui.backends.kubernetes.listing import ListedJobs, row_of
from torchx_tui.backends.kubernetes.scheduler import native_text
from torchx_tui.backends.kubernetes.volcano.jobs import checked_job
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.base.errors import TorchXTuiError

CASES = 600
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
FILES = ("real_jobs", "real_pods", "real_events", "torchx_job", "torchx_pods")
OBJECTS = [one for file in FILES for one in documents(f"volcano/{file}.yaml")]


def recorded(kind):
    return [one for one in OBJECTS if one["kind"] == kind]


@pytest.fixture
def chance():
    return random.Random(20261122)


@pytest.fixture(scope="module")
def server():
    with scripted_server() as made:
        yield made


@pytest.fixture
def api(server):
    made = server.api()
    yield made
    made.close()


def sent(document):
    """Return a document as JSON has it: without its values that are no JSON."""
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
    return json.loads(text, parse_constant=str)


def assert_sound_row(row):
    assert ":" in row.app_id
    assert "\n" not in row.app_id
    assert {type(text) for text in (row.name, row.user, row.image, row.msg)} == {str}
    counts = (row.replicas_running, row.replicas_wanted, row.replicas_succeeded)
    assert {type(number) for number in counts} == {int}
    for at in (row.submitted_at, row.started_at, row.finished_at):
        assert at is None or abs(at) < 1e12


def assert_sound(response):
    replicas = [replica for role in response.roles_statuses for replica in role.replicas]
    assert {str} >= {type(text) for text in (response.msg, *(replica.reason for replica in replicas))}
    assert len(replicas) <= MAX_REPLICAS
    assert all(replica.exit_code is None or type(replica.exit_code) is int for replica in replicas)


@pytest.mark.parametrize(
    ("kind", "group"), [(VOLCANO, "volcano"), (BATCH, "plain"), (JOBSET, "jobset"), (BATCH, "kueue")]
)
def test_odd_objects_are_described(chance, kind, group):
    found = [one for one in all_samples(group) if ("replicatedJobs" in one["job"]["spec"]) == (kind is JOBSET)]
    rows = 0
    for _ in range(CASES):
        one = chance.choice(found)
        job = kind.checked(odd_document(chance, one["job"]))
        if job is None:
            continue
        job["metadata"].setdefault("namespace", "default")
        made = [child for item in one.get("jobs", []) if (child := BATCH.checked(odd_document(chance, item)))]
        job = {**job, CHILDREN: made} if kind is JOBSET else job
        pods = [pod for item in one["pods"] if (pod := checked_pod(odd_document(chance, item))) is not None]
        events = [event for item in one["events"] if (event := checked_event(odd_document(chance, item))) is not None]
        facts = JobFacts(job, kind.by_replica(job, pods), by_object(events), None)
        kind.event_selectors(job, facts.pods)
        assert_sound(describe(kind, facts, chance.choice([0.0, 1.8e9, 1e11])))
        assert_sound_row(row_of(kind, job))
        assert isinstance(native_text(job, pods) if rows % 40 == 0 else "", str)
        rows += 1
    assert rows > CASES * 0.2


def test_odd_workloads_are_read(server, api, chance):
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/kq/workloads"
    for _ in range(200):
        one = chance.choice([one for one in all_samples("kueue") if one["job"]["spec"].get("suspend")])
        server.gives(path, sent(odd_document(chance, {"items": one["workloads"]})))
        assert isinstance(queue_reason(one["job"], read_workload(api, one["job"])), str)


@pytest.mark.parametrize("number", range(20))
def test_odd_lists_of_groups(server, number):
    chance = random.Random(number)
    groups = {"groups": [{"name": "batch", "versions": [{"groupVersion": "batch/v1"}]}]}
    server.gives("/apis", sent(odd_document(chance, groups)))
    api = server.api()
    assert ServerKinds(api).find()
    api.close()


def test_odd_job_costs_one_row_of_a_list(server, api, chance):
    good = recorded("Job")[:3]
    for _ in range(100):
        items = [*good, chance.choice([sent(odd_document(chance, recorded("Job")[3])), sent(odd_value(chance))])]
        chance.shuffle(items)
        metadata = chance.choice([{"resourceVersion": "5"}, sent(odd_value(chance))])
        server.gives(JOBS, {"kind": "JobList", "metadata": metadata, "items": items})
        rows = ListedJobs(lambda: [Jobs(api, VOLCANO)], "default").rows()
        assert {job["metadata"]["name"] for job in good} <= {row.app_id.partition(":")[2] for row in rows}
        assert len(rows) <= 4


@pytest.mark.parametrize("field", ["spec", "status", "metadata.annotations", "status.state.reason"])
def test_null_is_a_field_that_is_not_set(server, api, field):
    job = copy.deepcopy(recorded("Job")[0])
    *path, name = field.split(".")
    outer = job
    for part in path:
        outer = outer.setdefault(part, {})
    outer[name] = None
    server.gives(JOBS, {"kind": "JobList", "metadata": {}, "items": [job]})
    (row,) = ListedJobs(lambda: [Jobs(api, VOLCANO)], "default").rows()
    assert_sound_row(row)


def test_odd_answers_to_a_description(server, api, chance):
    jobs = Jobs(api, VOLCANO)
    for _ in range(100):
        server.gives(f"{JOBS}/x", sent(chance.choice([odd_document(chance, recorded("Job")[0]), odd_value(chance)])))
        pod_list = {"items": [odd_document(chance, pod) for pod in recorded("Pod")]}
        server.gives(pods_path("default"), sent(odd_document(chance, pod_list)))
        try:
            found = jobs.find("default:x")
            pods = [] if found is None else jobs.pods(found)
        except TorchXTuiError:
            continue
        if found is not None:
            assert_sound(describe(VOLCANO, JobFacts(found, VOLCANO.by_replica({}, pods), {}, None), 1.8e9))


def test_odd_events_of_a_watch(server, api, chance):
    kinds = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "OTHER"]
    events = [
        {"type": chance.choice(kinds), "object": odd_document(chance, chance.choice(recorded("Job")))}
        for _ in range(CASES)
    ]
    sound = {"type": "ADDED", "object": {"metadata": {"name": "sound", "uid": "sound"}}}
    stream = Stream()
    stream.put(*events, sound)
    watches = iter([stream])
    listed = 200, {"items": [], "metadata": {"resourceVersion": "5"}}
    server.answers["GET", JOBS] = lambda asked: (200, next(watches, Stream())) if "watch" in asked.params else listed
    reflector = Reflector(api, JOBS, checked_job)
    reflector.start("test")
    wait_until(lambda: "sound" in reflector.items(), "the event after the odd ones")
    reflector.close()
    stream.end()


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-45T99:99:99Z", "nan", "", 5, None]
)
def test_odd_times(text):
    assert abs(seconds_of(text) or 0.0) < 1e12


@pytest.mark.parametrize(
    "text",
    [
        *("nan", "inf", "1e999", "", "a\nb", "[red]", "-1", "9" * 400, "null", "[" * 20_000, '{"a":' * 20_000),
        *('{"name": 1, "roles": [{}]}', '{"format": 99}', "x" * 20_000),
    ],
    ids=lambda text: repr(text)[:12],
)
def test_odd_labels_and_annotations(text):
    for job in copy.deepcopy(recorded("Job")):
        job["metadata"]["annotations"] = dict.fromkeys((labels.APP_DEF, labels.SUBMITTED_AT, labels.USER), text)
        for task in job["spec"]["tasks"]:
            named = dict.fromkeys(("role-name", "replica-id", "app-name", "role-index"), text)
            task["template"]["metadata"]["labels"].update({f"torchx.pytorch.org/{key}": named[key] for key in named})
        found = checked_job(job)
        assert found is not None
        assert_sound_row(row_of(VOLCANO, found))
        assert_sound(describe(VOLCANO, JobFacts(found, {}, {}, None), 1.8e9))


def test_mistyped_value_leaves_the_job_out():
    job = copy.deepcopy(recorded("Job")[0])
    assert checked_job(job) == recorded("Job")[0]
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": 1}]
    assert checked_job(job) is None


def test_mistyped_number_of_replicas():
    job = copy.deepcopy(recorded("Job")[0])
    job["spec"]["tasks"][0]["replicas"] = 2_000_000_000
    (role,) = describe(VOLCANO, JobFacts(job, {}, {}, None), 1.8e9).roles_statuses
    assert len(role.replicas) == MAX_REPLICAS


def test_deeply_nested_item(server, api):
    deep = []
    for _ in range(900):
        deep = [deep]
    server.lists(JOBS, deep, *recorded("Job"))
    assert len(ListedJobs(lambda: [Jobs(api, VOLCANO)], "default").rows()) == len(recorded("Job"))
