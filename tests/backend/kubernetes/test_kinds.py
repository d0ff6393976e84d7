"""Several kinds of jobs on one server: which it has, their rows, and their ids."""

import json
import logging

import pytest
import yaml
from backend.kubernetes.samples import FOLDER, chosen, described, sample, serve, served
from support.scripted_server import scripted_server, status
from support.volcano_jobs import make_job

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kube.pods import seconds_of
from torchx_tui.backends.kubernetes.describe import read_facts
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.cron import CRON
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.types import Stream
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError

PLAIN_404 = 404, b"404 page not found\n"
FORBIDDEN = status(403, "Forbidden", "alice may not list it")


class Cluster:
    """A server, and a scheduler that lists its namespace ``jobs``."""

    def __init__(self, server, scheduler):
        self.server, self.scheduler = server, scheduler
        server.lists(pods_path("jobs"))
        server.lists(events_path("jobs"))
        for kind in (BATCH, CRON):
            self.has(kind)

    def has(self, kind, *jobs):
        self.server.answers["GET", kind.path("jobs")] = lambda asked: (200, {"items": chosen([*jobs], asked)})
        for job in jobs:
            self.server.gives(kind.path("jobs", job["metadata"]["name"]), job)

    def refuses(self, kind, answer):
        self.server.answers["GET", kind.path("jobs")] = answer

    def rows(self):
        return {row.app_id: row.state.name for row in self.scheduler.list()}


@pytest.fixture
def cluster(server, scheduler):
    server.serves("batch/v1", "apps/v1")
    return Cluster(server, scheduler)


def plain(name="single", **metadata):
    job = sample("plain", name)["job"]
    job["metadata"] |= {"namespace": "jobs", **metadata}
    return job


def volcano(name):
    job = make_job(name)
    job["metadata"] |= {"namespace": "jobs", "uid": f"uid-{name}", "resourceVersion": "1"}
    return job


def test_kinds_are_asked_once(cluster):
    cluster.has(BATCH, plain())
    for _ in range(3):
        assert cluster.rows() == {"jobs:job:single": "SUCCEEDED"}
    assert cluster.server.paths("GET").count("/apis") == 1
    # A server without Volcano is not asked for its jobs.
    assert not any("volcano" in path for path in cluster.server.paths("GET"))


def test_jobs_of_the_listed_namespace_are_the_users(cluster):
    found = crons()
    cluster.has(BATCH, plain(), *found["jobs"])
    cluster.has(CRON, *found["crons"])
    assert {row.name for row in cluster.scheduler.list() if not row.foreign} == {"single"}
    everywhere = KubernetesScheduler("test", cluster.server.client(), all_namespaces=True)
    for kind in (BATCH, CRON):
        cluster.server.answers["GET", kind.path()] = cluster.server.answers["GET", kind.path("jobs")]
    assert all(row.foreign for row in everywhere.list())
    everywhere.close()


def test_one_name_in_two_kinds(cluster):
    cluster.server.serves("batch/v1", "batch.volcano.sh/v1alpha1")
    cluster.has(BATCH, plain())
    cluster.has(VOLCANO, volcano("single"))
    assert cluster.rows() == {"jobs:job:single": "SUCCEEDED", "jobs:single": "SUBMITTED"}
    assert cluster.scheduler.describe("jobs:single").state.name == "SUBMITTED"
    found = cluster.scheduler.describe("jobs:job:single")
    assert (found.state.name, found.app_id) == ("SUCCEEDED", "jobs:job:single")
    assert found.metadata["kind"] == "Job"
    # Of a kind that nobody knows there are no jobs, least of all Volcano's of that name.
    assert cluster.scheduler.describe("jobs:thing:single") is None


@pytest.mark.parametrize("answer", [PLAIN_404, FORBIDDEN], ids=["not there", "forbidden"])
def test_kind_that_cannot_be_listed_hides_no_other(cluster, caplog, answer):
    cluster.has(BATCH, plain())
    cluster.refuses(CRON, answer)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert cluster.rows() == {"jobs:job:single": "SUCCEEDED"}
    assert caplog.text.count("are not listed") == 1
    assert cluster.server.paths("GET").count(CRON.path("jobs")) == 1


def test_nothing_names_a_missing_page_where_there_is_no_volcano(cluster):
    for path in (VOLCANO.path("jobs"), VOLCANO.path("jobs", "gone"), "/apis/batch.volcano.sh/v1alpha1"):
        cluster.server.answers["GET", path] = PLAIN_404
    scheduler = cluster.scheduler
    assert scheduler.list() == []
    assert scheduler.describe("jobs:gone") is None
    assert scheduler.has_ended("jobs:gone")
    with pytest.raises(JobNotFoundError):
        scheduler.log_stream("jobs:gone", "main", 0, Stream.COMBINED)
    scheduler.cancel("jobs:gone")
    assert "404" not in str(scheduler.check())


def test_server_that_may_list_nothing_says_so(cluster):
    for kind in (BATCH, CRON):
        cluster.refuses(kind, FORBIDDEN)
    for _ in range(2):
        with pytest.raises(SchedulerError, match="alice may not list it"):
            cluster.rows()


def test_jobs_of_a_jobset_have_no_rows(cluster):
    found = sample("jobset", "js-running")
    for one in (found["job"], *found["jobs"]):
        one["metadata"]["namespace"] = "jobs"
    cluster.server.serves("batch/v1", "jobset.x-k8s.io/v1alpha2")
    cluster.has(BATCH, plain(), *found["jobs"])
    cluster.has(JOBSET, found["job"])
    assert cluster.rows() == {"jobs:jobset:js-running": "RUNNING", "jobs:job:single": "SUCCEEDED"}
    (row,) = (row for row in cluster.scheduler.list() if row.name == "js-running")
    assert (row.replicas_running, row.replicas_wanted, row.kind) == (4, 4, "JobSet")
    # Where their owner may not be listed they are shown.
    cluster.refuses(JOBSET, FORBIDDEN)
    cluster.scheduler.close()
    assert len(cluster.rows()) == 3


def crons():
    (line,) = (FOLDER / "cron.jsonl").read_text().splitlines()
    return json.loads(line)


def test_row_of_a_cron_job_is_that_of_its_newest_job(cluster):
    found = crons()
    cluster.has(BATCH, *found["jobs"])
    cluster.has(CRON, *found["crons"])
    assert cluster.rows() == {
        "jobs:cronjob:cron-ok": "RUNNING",
        "jobs:cronjob:cron-fails": "PENDING",
        "jobs:cronjob:cron-forbid": "RUNNING",
        "jobs:cronjob:cron-suspended": "PENDING",
    }


@pytest.mark.parametrize(
    ("name", "state", "message"),
    [
        ("cron-fails", "FAILED", "its newest job is cron-fails-29928436; exit 4: main/0"),
        ("cron-suspended", "PENDING", "suspended, by somebody or by a queue: its action resume lets it run"),
    ],
)
def test_cron_job(cluster, name, state, message):
    found = crons()
    cluster.has(BATCH, *(one for one in found["jobs"] if "active" not in one["status"]))
    cluster.has(CRON, *found["crons"])
    cluster.server.answers["GET", pods_path("jobs")] = lambda asked: (200, {"items": chosen(found["pods"], asked)})
    shown = cluster.scheduler.describe(f"jobs:cronjob:{name}")
    assert shown.state.name == state
    assert shown.msg.startswith(message)
    assert shown.metadata["schedule"]


def test_replica_is_the_newest_of_several_tries():
    response = described(BATCH, sample("plain", "backoff-exceeded"))
    (replica,) = response.roles_statuses[0].replicas
    assert replica.hostname == "backoff-exceeded-ql8nn"


@pytest.mark.parametrize(
    ("name", "restarts"), [("oom", 0), ("oom-indexed", 0), ("backoff-exceeded", 2), ("per-index", 2), ("liveness", 6)]
)
def test_restarts(name, restarts):
    assert described(BATCH, sample("plain", name)).num_restarts == restarts


def test_group_that_may_be_complete_is_not_blamed():
    found = sample("gang", "gang-own")
    found["podgroups"][0]["spec"]["schedulingPolicy"]["gang"]["minCount"] = 2
    assert described(BATCH, found).msg.startswith("waits for the PodGroup own-pg, which is missing or not complete")


def test_group_of_a_job_that_runs_is_not_asked_for():
    found = sample("gang", "gang-own")
    found["job"]["status"]["ready"] = 2
    with served(BATCH, found) as (server, app_id):
        read_facts(Jobs(server.api(), BATCH), app_id, 0.0)
        assert not [path for path in server.paths("GET") if "podgroups" in path]


def ending(name, **status):
    """Return a job whose end is not written yet."""
    found = sample("plain", name)
    found["job"]["status"] |= status
    conditions = found["job"]["status"].get("conditions", [])
    found["job"]["status"]["conditions"] = [one for one in conditions if one["type"] not in ("Failed", "Complete")]
    return found


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ending("deadline"), "ran longer than its 15 s"),
        (ending("policy-failjob"), "exit 42: main/2; rule 0 of the podFailurePolicy does not retry it"),
        # Its pods have ended, and were not counted yet.
        (ending("single", active=1, succeeded=None), "<NONE>"),
    ],
    ids=["deadline", "policy", "success"],
)
def test_job_that_ends_runs(found, message):
    response = described(BATCH, found)
    assert response.state.name == "RUNNING"
    assert response.msg.startswith(message)


def test_pod_that_its_job_ended_is_no_cause():
    found = ending("policy-failjob")
    killed = sample("plain", "oom-indexed")["pods"][0]
    killed["metadata"] |= {
        "deletionTimestamp": "2026-11-26T14:42:00Z",
        "ownerReferences": [{"uid": found["job"]["metadata"]["uid"]}],
    }
    killed["metadata"]["labels"]["job-name"] = "policy-failjob"
    found["pods"].append(killed)
    assert "out of memory" not in described(BATCH, found).msg


def test_described_state_where_pods_are_not_listed(cluster):
    found = sample("plain", "crashloop")
    job = found["job"]
    job["metadata"]["resourceVersion"] = "5"
    app_id = serve(cluster.server, BATCH, found)
    cluster.has(BATCH, job)
    pods = cluster.server.answers["GET", pods_path("jobs")]
    cluster.server.answers["GET", pods_path("jobs")] = lambda asked: (
        FORBIDDEN if asked.params["labelSelector"] == "job-name" else pods(asked)
    )
    # The job says only that no pod is ready.
    assert cluster.rows() == {app_id: "PENDING"}
    assert cluster.scheduler.describe(app_id).state.name == "RUNNING"
    assert cluster.rows() == {app_id: "RUNNING"}
    job["metadata"]["resourceVersion"] = "6"
    assert cluster.rows() == {app_id: "PENDING"}


def test_start_in_the_row_is_that_of_the_first_pod(cluster):
    found = sample("plain", "indexed-running")
    app_id = serve(cluster.server, BATCH, found)
    (row,) = cluster.scheduler.list()
    assert row.started_at == seconds_of("2026-11-26T14:41:38Z")
    cluster.scheduler.describe(app_id)
    (row,) = cluster.scheduler.list()
    assert row.started_at == seconds_of("2026-11-26T14:41:41Z")


def test_log_of_each_completion_index(cluster):
    found = sample("plain", "indexed-done")
    server = cluster.server
    app_id = serve(server, BATCH, found)
    for pod in found["pods"]:
        name = pod["metadata"]["name"]
        text = f"2026-11-26T14:41:33.000000000Z I am {name}\n".encode()
        server.gives(f"{pods_path('jobs')}/{name}/log", text)
    assert app_id == "jobs:job:indexed-done"
    lines = [list(cluster.scheduler.log_iter(app_id, "main", k)) for k in (0, 3)]
    assert [line[0].split("-")[2] for line in lines] == ["0", "3"]
    assert "indexed-done-2" in cluster.scheduler.describe_native(app_id)


def test_newest_message_of_a_series_of_events():
    job = sample("plain", "unsched-pvc")
    del job["pods"][0]["status"]["conditions"]
    (event,) = job["events"]
    # Written at once, before it was repeated.
    old = {**event, "message": "0/1 nodes are available: 1 Too many pods.", "eventTime": "2026-11-26T15:00:00.000000Z"}
    event["series"] = {"lastObservedTime": "2026-11-26T15:10:00.000000Z"}
    job["events"] = [event, old]
    assert "missing-claim" in described(BATCH, job).msg


def test_yaml_of_a_jobset_has_its_jobs(cluster):
    app_id = serve(cluster.server, JOBSET, sample("jobset", "js-running"))
    documents = [one for one in yaml.safe_load_all(cluster.scheduler.describe_native(app_id)) if one]
    assert [one["metadata"]["name"] for one in documents][:3] == [
        "js-running", "js-running-workers-0", "js-running-workers-1",
    ]  # fmt: skip
    assert all(one.keys() == {"metadata", "spec", "status"} for one in documents)


# Cancelling


def cancelled(kind, found):
    """Return what is written where a recorded job is cancelled."""
    with scripted_server() as server:
        app_id = serve(server, kind, found)
        job = found["job"]
        path = kind.path(job["metadata"]["namespace"], job["metadata"]["name"])
        server.answers["PUT", path] = lambda asked: (200, asked.body)
        scheduler = KubernetesScheduler("test", server.client(), namespace="jobs")
        scheduler.cancel(app_id)
        scheduler.close()
        (put,) = server.requests("PUT")
        return put.body


def test_cancelled_job_is_past_its_deadline():
    body = cancelled(BATCH, sample("plain", "indexed-running"))
    assert body["spec"]["activeDeadlineSeconds"] == 1
    body["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]
    assert BATCH.state(body).name == "CANCELLED"


def test_cancelled_jobset_is_suspended():
    body = cancelled(JOBSET, sample("jobset", "js-running"))
    assert body["spec"]["suspend"] is True
    assert body.keys() == {"metadata", "spec", "status"}
    assert JOBSET.state(body).name == "CANCELLED"


def test_cron_job_cannot_be_cancelled(cluster):
    found = crons()
    cluster.has(BATCH, *[one for one in found["jobs"] if "Failed" not in str(one["status"])])
    cluster.has(CRON, *found["crons"])
    with pytest.raises(SchedulerError, match="delete it, or suspend it"):
        cluster.scheduler.cancel("jobs:cronjob:cron-ok")
