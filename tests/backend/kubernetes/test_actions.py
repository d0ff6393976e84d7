"""What else can be done with a job: suspend, resume, scale."""

import json
from pathlib import Path

import pytest
from backend.kubernetes.samples import FOLDER, sample, serve
from support.scripted_server import status
from support.tables import toml_table

from torchx_tui.backends.kubernetes.actions import job_actions
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.cron import CRON
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError

ROWS = toml_table(Path(__file__).with_name("actions.toml"))

KINDS = {"plain": BATCH, "kueue": BATCH, "jobset": JOBSET, "cron": CRON, "volcano": VOLCANO}


def cron_job(name):
    found = json.loads((FOLDER / "cron.jsonl").read_text())
    return {**found, "job": next(one for one in found["crons"] if one["metadata"]["name"] == name)}


def put_job(server, group, name):
    """Put a recorded job on a server that keeps what is written to it; return its app id."""
    found = cron_job(name) if group == "cron" else sample(group, name)
    kind, app_id = KINDS[group], serve(server, KINDS[group], found)
    path = kind.path(found["job"]["metadata"]["namespace"], found["job"]["metadata"]["name"])
    server.answers["GET", path] = lambda _: (200, found["job"])

    def write(asked):
        found["job"] = asked.body
        return 200, found["job"]

    server.answers["PUT", path] = write
    server.written = lambda: found["job"]["spec"]
    return app_id


@pytest.mark.parametrize(("group", "name", "expected"), ROWS["actions"])
def test_actions_fit_the_state(server, scheduler, group, name, expected):
    assert [action.name for action in scheduler.actions(put_job(server, group, name))] == expected


@pytest.mark.parametrize(
    ("group", "name"), [("plain", "indexed-running"), ("jobset", "js-running"), ("cron", "cron-ok")]
)
def test_suspended_and_resumed(server, scheduler, group, name):
    app_id = put_job(server, group, name)
    before = {**server.written(), "suspend": False}
    scheduler.act(app_id, "suspend")
    assert server.written() == {**before, "suspend": True}
    scheduler.act(app_id, "resume")
    assert server.written() == before


def test_pods_of_an_indexed_job_are_its_completions(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    scheduler.act(app_id, "scale", "2")
    assert (server.written()["parallelism"], server.written()["completions"]) == (2, 2)


def test_completions_stay_where_pods_take_turns(server, scheduler):
    app_id = put_job(server, "plain", "unsched-hostport")
    server.written()["completions"] = 8
    scheduler.act(app_id, "scale", "4")
    assert (server.written()["parallelism"], server.written()["completions"]) == (4, 8)


@pytest.mark.parametrize("value", ["", "0", "-1", "two", "1.5", "10001", "٣" * 9])
def test_malformed_number_changes_nothing(server, scheduler, value):
    app_id = put_job(server, "plain", "indexed-running")
    with pytest.raises(SchedulerError, match="is not a number of pods: write it as 4, at most 10000"):
        scheduler.act(app_id, "scale", value)
    assert not server.requests("PUT")


def test_action_that_is_not_offered_is_refused(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    with pytest.raises(SchedulerError, match=r"resume is not possible now\. Possible: suspend, scale"):
        scheduler.act(app_id, "resume")


def test_job_that_somebody_else_writes_is_read_again(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    path = BATCH.path("jobs", "indexed-running")
    write, conflicts = server.answers["PUT", path], [status(409, "Conflict", "it has changed")]
    server.answers["PUT", path] = lambda asked: conflicts.pop() if conflicts else write(asked)
    scheduler.act(app_id, "suspend")
    assert server.written()["suspend"] is True


def test_unknown_job_has_no_actions(server, scheduler):
    server.answers["GET", BATCH.path("jobs", "gone")] = status(404, "NotFound", "gone")
    with pytest.raises(JobNotFoundError):
        scheduler.actions("jobs:job:gone")


def volcano_command(server, scheduler, name, action):
    """Do an action; return the recorded job, and the path and the body of what was created for it."""
    app_id = put_job(server, "volcano", name)
    scheduler.act(app_id, action)
    (asked,) = server.requests("POST")
    return sample("volcano", name)["job"], asked.path, asked.body


@pytest.mark.parametrize(
    ("name", "action", "asked"), [("poddel", "suspend", "AbortJob"), ("cancel", "resume", "ResumeJob")]
)
def test_volcano_is_asked_by_a_command(server, scheduler, name, action, asked):
    job, path, body = volcano_command(server, scheduler, name, action)
    own = job["metadata"]
    assert path == f"/apis/bus.volcano.sh/v1alpha1/namespaces/{own['namespace']}/commands"
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": own["name"], "uid": own["uid"]}
    target |= {"controller": True, "blockOwnerDeletion": True}
    assert body == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {
            "generateName": f"{own['name']}-{asked.lower()}-",
            "namespace": own["namespace"],
            "ownerReferences": [target],
        },
        "target": target,
        "action": asked,
    }
    assert not server.requests("PUT")


def sizes(spec):
    found = [one["template"]["spec"] for one in spec["replicatedJobs"]]
    return [[one["parallelism"], one["completions"]] for one in found]


@pytest.mark.parametrize(("name", "value", "expected"), ROWS["scaled"])
def test_scaled_jobset(server, scheduler, name, value, expected):
    app_id = put_job(server, "jobset", name)
    scheduler.act(app_id, "scale", value)
    assert sizes(server.written()) == expected


def test_value_that_scales_a_jobset_of_several_jobs(server, scheduler):
    found = sample("jobset", "js-driver")["job"]
    found["status"]["conditions"] = []
    (*_, scale) = job_actions(JOBSET, found)
    assert scale.value == "a job and a number, such as driver=4"
    for value in ("4", "gone=4"):
        with pytest.raises(SchedulerError, match=r"names no job of the JobSet: .* JOB=4\. Valid: driver, work"):
            JOBSET.scaled(found, value)


def test_refused_scale_names_the_feature(server, scheduler):
    app_id = put_job(server, "jobset", "js-running")
    words = "JobSet.jobset.x-k8s.io is invalid: spec.replicatedJobs: Invalid value: [...]: field is immutable"
    server.answers["PUT", JOBSET.path("jobsets", "js-running")] = status(422, "Invalid", words)
    with pytest.raises(SchedulerError, match="lets no JobSet be changed: its feature gate ElasticJobSet would"):
        scheduler.act(app_id, "scale", "4")


def test_jobs_of_others_cannot_be_scaled():
    job = sample("jobset", "js-running")["job"]
    job["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = "NonIndexed"
    assert [one.name for one in job_actions(JOBSET, job)] == ["suspend"]
