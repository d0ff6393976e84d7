"""Recorded jobs, and a server that has one of them with its pods and events."""

import json
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from support.scripted_server import scripted_server

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kubernetes.describe import describe, read_facts
from torchx_tui.backends.kubernetes.jobs import Jobs

FOLDER = Path(__file__).parent / "samples"
LETTERS = {"SUCCEEDED": "S", "RUNNING": "R", "PENDING": "P", "FAILED": "F", "UNKNOWN": "U", "CANCELLED": "C"}


@cache
def _read(group):
    lines = (FOLDER / f"{group}.jsonl").read_text().splitlines()
    return {json.loads(line)["name"]: line for line in lines}


def sample(group, name):
    """Return the recording of a job, which may be changed."""
    return json.loads(_read(group)[name])


def all_samples(group):
    return [sample(group, name) for name in _read(group)]


def chosen(items, asked):
    """Return the objects that a request's selectors choose, as a server does."""
    for part in filter(None, asked.params.get("labelSelector", "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            items = [one for one in items if name in one["metadata"].get("labels", {})]
            continue
        # Servers write both names of a label; the recordings have the one with a domain.
        names = name, f"batch.kubernetes.io/{name}"
        items = [one for one in items if value in map(one["metadata"].get("labels", {}).get, names)]
    for part in filter(None, asked.params.get("fieldSelector", "").split(",")):
        field, _, value = part.partition("=")
        *path, last = field.rstrip("!").split(".")
        wanted = not field.endswith("!")
        items = [one for one in items if ((one[path[0]] if path else one).get(last) == value) is wanted]
    return items


def serve(server, kind, found):
    """Put a recording on a server; return its app id."""
    job = found["job"]
    namespace = job["metadata"]["namespace"]
    server.gives(kind.path(namespace, job["metadata"]["name"]), job)
    lists = {
        kind.path(namespace): [job],
        f"/apis/batch/v1/namespaces/{namespace}/jobs": found.get("jobs") or [job],
        pods_path(namespace): found["pods"],
        events_path(namespace): found["events"],
        f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads": found.get("workloads", []),
    }
    for group in found.get("podgroups", []):
        path = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups/{group['metadata']['name']}"
        server.gives(path, group)
    for path, items in lists.items():
        server.answers["GET", path] = lambda asked, items=items: (200, {"items": chosen(items, asked)})
    return kind.app_id(job)


@contextmanager
def served(kind, found):
    with scripted_server() as server:
        yield server, serve(server, kind, found)


def described(kind, found, now=None):
    """Describe a recorded job through a server that has only it, with at most five requests."""
    with served(kind, found) as (server, app_id):
        at = now or time.time()
        facts = read_facts(Jobs(server.api(), kind), app_id, at)
        assert facts is not None
        assert len(server.asked) <= 5, [one.path for one in server.asked]
    return describe(kind, facts, at)


def letters(response):
    """Return the states of a job's replicas, a letter each."""
    return "".join(LETTERS[one.state.name] for role in response.roles_statuses for one in role.replicas)
