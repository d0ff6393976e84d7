"""Commands on the jobs of an API server that answers as scripted."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

import pytest
from support.scripted_server import scripted_server, status
from support.volcano_jobs import JOBS, make_job

HANDLE = "kubernetes://torchx/default:job"
JOB = f"{JOBS.format('default')}/job"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Give a server without objects, which the kubeconfig names."""
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    with scripted_server() as made:
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": made.url}}],
            "users": [{"name": "test", "user": {}}],
        }
        path.write_text(json.dumps(config))
        made.lists(PODS)
        made.lists("/api/v1/namespaces/default/events")
        yield made


def volcano_job(phase: str) -> Any:
    job = make_job("job")
    job["metadata"].update(namespace="default", uid="u")
    job["status"] = {"state": {"phase": phase}}
    return job


def test_log_of_a_pending_job_names_what_it_waits_for(command, server):
    server.gives(JOB, volcano_job("Pending"))
    ended = command("log", HANDLE)
    assert (ended.code, ended.out) == (0, "")
    assert re.search(r"job has not started and has no log yet: \S+", ended.err)


def test_followed_log_of_a_pending_job_says_so(command, server):
    asked = count()
    server.answers["GET", JOB] = lambda _: (200, volcano_job("Pending" if next(asked) < 4 else "Aborted"))
    ended = command("log", "--tail", HANDLE)
    assert "waiting for the log of " + HANDLE + ", which has not started: " in ended.err
    assert ended.out == ""


@pytest.mark.parametrize("checked", [True, False])
def test_dryrun_without_a_server(command, server, checked):
    server.answers["POST", JOBS.format("default")] = server.answers["POST", PODS] = lambda _: None
    cfg = f"queue=default,validate_spec={checked}"
    ended = command("dryrun", "-s", "kubernetes", "-cfg", cfg, "utils.echo")
    assert "error: " not in ended.err.replace("warning: ", "")
    assert "closed the connection" in ended.err
    assert (ended.code, "kind: Job" in ended.out) == ((2, False) if checked else (0, True))


@pytest.mark.parametrize(
    ("words", "shown"), [(("status",), "SUCCEEDED"), (("wait", "--timeout", "9"), ""), (("describe",), "busybox:local")]
)
def test_commands_without_the_right_to_list_pods(command, server, words, shown):
    refusal = 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"'
    server.gives(JOB, volcano_job("Completed"))
    server.answers["GET", PODS] = status(403, "Forbidden", refusal)
    ended = command(*words, HANDLE)
    assert ended.code == 0
    assert shown in ended.out
    assert "alice may not list pods" in ended.out or words != ("status",)


def test_cancel_names_the_right_that_is_missing(command, server):
    what = 'resource "jobs/status" in API group "batch.volcano.sh" in the namespace "default"'
    refusal = f'jobs.batch.volcano.sh "job" is forbidden: User "alice" cannot update {what}'
    listing = 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"'
    server.gives(JOB, volcano_job("Running"))
    server.answers["GET", PODS] = status(403, "Forbidden", listing)
    server.answers["PUT", f"{JOB}/status"] = status(403, "Forbidden", refusal)
    ended = command("cancel", HANDLE)
    assert ended.code != 0
    assert "alice may not update jobs.batch.volcano.sh/status" in ended.err
    assert "list pods" not in ended.err
