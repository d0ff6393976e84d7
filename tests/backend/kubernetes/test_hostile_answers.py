"""Answers of a server whose fields are missing, of another type, or hostile: one bad object costs one row."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.scripted_server import scripted_server

from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.describe import JobFacts, by_object, describe, describe_facts
from torchx_tui.backends.kubernetes.jobs import MOST_REPLICAS, find_job, list_pods, pods_path
from torchx_tui.backends.kubernetes.listing import KnownReasons, pages, row_of
from torchx_tui.backends.kubernetes.request.app_def import roles_of
from torchx_tui.backends.kubernetes.scheduler import native_text
from torchx_tui.backends.kubernetes.shapes import checked_event, checked_job, checked_pod
from torchx_tui.backends.kubernetes.watching import JobRows
from torchx_tui.specs import TorchXTuiError

FOLDER = Path(__file__).parent / "volcano"
SEED = 20261122
CASES = 3000
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 10**30, 1.5, float("nan"), float("inf"), "", " ", "a\nb", "\x1b[2J", "[red]x",
    "nan", "inf", "-1", "1e999", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", "2026-13-45T99:99:99Z", "../..",
    "x" * 5000, "\ud800", "null", "{}", "[" * 3000, [], [None], [[]], [{}], [1, "a", {}], {}, {"a": None}, {"": {}},
    {"name": 1}, {"name": {"name": []}}, [{"name": "a"}, {"name": None}], ["a", 1],
]  # fmt: skip


def documents(*files):
    return [one for file in files for one in yaml.safe_load_all((FOLDER / file).read_text()) if one]


ALL = documents("real_jobs.yaml", "real_pods.yaml", "real_events.yaml", "torchx_job.yaml", "torchx_pods.yaml")
OF_KIND = {kind: [one for one in ALL if one["kind"] == kind] for kind in ("Job", "Pod", "Event")}


def places(value):
    """Yield every container and key of plain data."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from places(part)


def spoiled(chance, found, most=4):
    """Return a copy with some values replaced, removed or put somewhere else."""
    made = json.loads(json.dumps(found))
    for _ in range(chance.randint(1, most)):
        known = list(places(made))
        if not known:
            break
        holder, key = chance.choice(known)
        kind = chance.random()
        if kind < 0.15:
            del holder[key]
        elif kind < 0.25:
            other, name = chance.choice(known)
            holder[key] = copy.deepcopy(other[name])
        else:
            holder[key] = copy.deepcopy(chance.choice(HOSTILE))
    return made


def assert_sound_row(row):
    assert isinstance(row.app_id, str)
    assert ":" in row.app_id
    assert "\n" not in row.app_id
    for text in (row.name, row.user, row.image, row.msg):
        assert isinstance(text, str)
    for number in (row.replicas_running, row.replicas_wanted, row.replicas_succeeded):
        assert type(number) is int
    for at in (row.submitted_at, row.started_at, row.finished_at):
        assert at is None or abs(at) < 1e12


def assert_sound(response):
    assert isinstance(response.msg, str)
    assert sum(len(role.replicas) for role in response.roles_statuses) <= MOST_REPLICAS
    for role in response.roles_statuses:
        for replica in role.replicas:
            assert isinstance(replica.reason, str)
            assert replica.exit_code is None or type(replica.exit_code) is int


@pytest.fixture(scope="module")
def server():
    with scripted_server() as made:
        yield made


@pytest.fixture
def api(server):
    made = server.api()
    yield made
    made.close()


def test_spoiled_jobs_pods_and_events_are_described(api):
    """Each case is a job, its pods and its events, any of them spoiled, after the check where they enter."""
    chance = random.Random(SEED)
    rows = 0
    for _ in range(CASES):
        original = chance.choice(OF_KIND["Job"])
        job = checked_job(spoiled(chance, original) if chance.random() < 0.7 else copy.deepcopy(original))
        if job is None:
            continue
        job["metadata"].setdefault("namespace", "default")
        name = original["metadata"]["name"]
        mine = [pod for pod in OF_KIND["Pod"] if pod["metadata"]["labels"].get("volcano.sh/job-name") == name]
        pods = [pod for one in mine if (pod := checked_pod(spoiled(chance, one))) is not None]
        about = [one for one in OF_KIND["Event"] if one["involvedObject"]["name"].startswith(name)]
        events = [one for event in about if (one := checked_event(spoiled(chance, event))) is not None]
        facts = JobFacts(job, {pod["metadata"]["name"]: pod for pod in pods}, by_object(events), None)
        now = chance.choice([0.0, 1.8e9, 1e11])
        assert_sound(describe_facts(api, facts, now))
        assert_sound_row(row_of(job, KnownReasons()))
        if rows % 40 == 0:
            assert isinstance(native_text(job, pods), str)
        rows += 1
    # Most are shown: a job is left out only where it has no name.
    assert rows > CASES * 0.9


def answers(chance, items):
    """Return a page of jobs, spoiled around its items as well."""
    page: dict[str, Any] = {"kind": "JobList", "metadata": {"resourceVersion": "5"}, "items": items}
    if chance.random() < 0.2:
        page = {**page, "metadata": chance.choice(HOSTILE)}
    return json.dumps(page).encode()


def test_one_bad_job_of_a_list_costs_one_row(server, api):
    chance = random.Random(SEED)
    good = OF_KIND["Job"][:3]
    names = {job["metadata"]["name"] for job in good}
    for _ in range(150):
        bad = chance.choice([spoiled(chance, OF_KIND["Job"][3]), chance.choice(HOSTILE)])
        items = [*copy.deepcopy(good), bad]
        chance.shuffle(items)
        server.answers["GET", JOBS] = (200, json.loads(answers(chance, items)))
        rows = [row_of(job, KnownReasons()) for page, _ in pages(api, "default") for job in page]
        assert names <= {row.app_id.partition(":")[2] for row in rows}
        assert len(rows) <= 4


def test_spoiled_answers_to_a_look(server, api):
    chance = random.Random(SEED)
    for _ in range(150):
        job = chance.choice([spoiled(chance, OF_KIND["Job"][0], 8), chance.choice(HOSTILE)])
        server.answers["GET", f"{JOBS}/x"] = (200, job)
        pod_list = {"items": [spoiled(chance, pod) for pod in OF_KIND["Pod"]]}
        server.answers["GET", pods_path("default")] = (200, spoiled(chance, pod_list, 2))
        try:
            found = find_job(api, "default:x")
            pods, _ = list_pods(api, "default", "x")
        except TorchXTuiError:
            continue
        if found is not None:
            assert_sound(describe(JobFacts(found, {pod["metadata"]["name"]: pod for pod in pods}, {}, None), 1.8e9))


def test_spoiled_events_of_a_watch(api):
    chance = random.Random(SEED)
    rows = JobRows(api, "default")
    for number in range(1000):
        job = spoiled(chance, chance.choice(OF_KIND["Job"]))
        rows.take(chance.choice(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "OTHER"]), job)
        if number % 10 == 0:
            rows.take("ADDED", chance.choice(HOSTILE))


def in_annotations(text):
    def put(job):
        job["metadata"]["annotations"] = dict.fromkeys((labels.APP_DEF, labels.SUBMITTED_AT, labels.USER), text)

    return put


def in_labels(text):
    def put(job):
        for task in job["spec"]["tasks"]:
            task["template"]["metadata"]["labels"].update(
                {f"torchx.pytorch.org/{name}": text for name in ("role-name", "replica-id", "app-name", "role-index")}
            )

    return put


@pytest.mark.parametrize("put", [in_annotations, in_labels])
@pytest.mark.parametrize(
    "text",
    [
        "nan", "inf", "-inf", "1e999", "", "\n", "a\nb", "\x1b]0;x\x07", "[red]", "-1", "9" * 400, "{}", "null", "[]",
        "[" * 20_000, '{"a":' * 20_000, '{"name": 1, "roles": [{}]}', '{"format": 99}', "\u202e", "x" * 20_000,
    ],
    ids=lambda text: repr(text)[:12],
)  # fmt: skip
def test_labels_and_annotations(api, put, text):
    for original in OF_KIND["Job"]:
        job = copy.deepcopy(original)
        put(text)(job)
        found = checked_job(job)
        assert found is not None
        assert_sound_row(row_of(found, KnownReasons()))
        assert_sound(describe_facts(api, JobFacts(found, {}, {}, None), 1.8e9))


def test_what_variables_and_volumes_come_from():
    env = [{"name": f"V{k}", "valueFrom": what} for k, what in enumerate(("odd", {"fieldRef": "odd"}))]
    kinds = (("hostPath", "path"), ("persistentVolumeClaim", "claimName"))
    sources: list[Any] = [{kind: what} for kind, field in kinds for what in ("odd", {field: 1})]
    volumes = [{"name": f"v{k}", **source} for k, source in enumerate(sources)]
    mounts = [{"name": volume["name"], "mountPath": "/x"} for volume in volumes]
    spec = {"containers": [{"name": "c", "env": env, "volumeMounts": mounts}], "volumes": volumes}
    job = checked_job({"metadata": {"name": "x"}, "spec": {"tasks": [{"template": {"spec": spec}}]}})
    assert job is not None
    (role,) = roles_of(job)
    assert (role.env, role.mounts) == ({"V0": "", "V1": ""}, [])


def test_a_number_of_replicas_that_was_mistyped(api):
    job = copy.deepcopy(OF_KIND["Job"][0])
    job["spec"]["tasks"][0]["replicas"] = 2_000_000_000
    response = describe(JobFacts(job, {}, {}, None), 1.8e9)
    assert sum(len(role.replicas) for role in response.roles_statuses) == MOST_REPLICAS


def test_an_answer_that_is_nested_without_end(server, api):
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    server.answers["GET", JOBS] = (200, {"items": [deep, *copy.deepcopy(OF_KIND["Job"])]})
    rows = [row_of(job, KnownReasons()) for page, _ in pages(api, "default") for job in page]
    assert len(rows) == len(OF_KIND["Job"])
