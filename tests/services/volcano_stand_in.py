"""Stands in for Volcano's controller and webhook where the real ones cannot be had.

usage: volcano_stand_in.py KUBECONFIG [--scheduler NAME] [--grace SECONDS]

It makes the pods of jobs, with the labels, annotations and environment of the real one's; keeps their status; carries
out policies; kills the pods of a job that a client aborted. A job of a queue that does not exist is left alone. One
that asks for more cpu than its queue allows, or the nodes have, waits without pods, and events say why, as they do of
pods that the server refuses; after some tries it is given up. It has no gang scheduling: the pods that have room run,
and the job is Pending until the others have it too. It knows no Command objects.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from datetime import datetime, timezone
from http.client import HTTPException
from urllib.parse import quote

from plain_kubernetes import MERGE, Object, RefusedError, Server
from volcano_objects import (
    GROUP,
    SCHEDULING,
    defaults_of,
    job_path,
    make_pod_group,
    make_pods,
    not_created_words,
    pod_group_name,
    pod_group_status,
    why_not_enqueued,
    why_pending,
)
from volcano_states import ENDED, ENDING, has_died, next_step, status_of

JOBS = f"/apis/{GROUP}/jobs"
PODS = "/api/v1/pods"
JOB_LABEL = "volcano.sh/job-name"
# Seconds until something that failed is tried again.
RETRY = 0.3
# Seconds until it is looked again whether a job's queue is there, and has room, and whether its pods are refused.
LATER = 1.0
# How often pods that the server refuses are tried to be made; the real one tries 15 times, with growing pauses.
TRIES = 5
Key = tuple[str, str]


class Changed:
    """The jobs that are to be looked at, as namespace and name; each once, however often it changed."""

    def __init__(self) -> None:
        self._keys: dict[Key, float] = {}
        self._lock = threading.Condition()

    def add(self, key: Key, after: float = 0.0) -> None:
        with self._lock:
            due = time.monotonic() + after
            self._keys[key] = min(due, self._keys.get(key, due))
            self._lock.notify()

    def take(self) -> Key:
        """Wait for the next one."""
        with self._lock:
            while True:
                now = time.monotonic()
                for key, due in self._keys.items():
                    if due <= now:
                        del self._keys[key]
                        return key
                self._lock.wait(min(self._keys.values()) - now if self._keys else None)


def follow(kubeconfig: str, path: str, selector: str, changed: Changed) -> None:
    """Note the jobs that objects belong to, all at first and then as they change; for ever."""
    server = Server(kubeconfig)
    query = {"labelSelector": selector} if selector else {}
    while True:
        try:
            listed = server.ask("GET", f"{path}?labelSelector={quote(selector)}")
            for one in listed["items"]:
                changed.add(_key_of(one))
            for event in server.watch(path, query, listed["metadata"]["resourceVersion"]):
                changed.add(_key_of(event["object"]))
        except (OSError, HTTPException, RefusedError, ValueError) as error:
            _complain(error)
            time.sleep(RETRY)


def _key_of(one: Object) -> Key:
    metadata = one["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(JOB_LABEL, metadata["name"])


class Controller:
    """Brings jobs on, one step at a time.

    Args:
        server: the API server.
        scheduler: which scheduler places the pods.
        grace: how many seconds a pod may take to end.
    """

    def __init__(self, server: Server, scheduler: str, grace: int) -> None:
        self._server = server
        self._scheduler = scheduler
        self._grace = grace
        self._said: set[tuple[str, str]] = set()
        self._tries: dict[str, int] = {}

    def bring_on(self, key: Key) -> bool:
        """Do what a job needs next; return whether it waits for something that nobody tells of."""
        namespace, name = key
        job = self._find(f"/apis/{GROUP}/namespaces/{namespace}/jobs/{name}")
        if job is None or job["metadata"].get("deletionTimestamp"):
            self._finish(self._labelled(namespace, name))
            return False
        queue = self._find(f"/apis/{SCHEDULING}/queues/{job['spec'].get('queue') or 'default'}")
        if queue is None:
            return True
        job = self._complete(job)
        pods = self._pods_of(job)
        self._finish(pods)
        step = next_step(job, pods)
        before = job.get("status") or {}
        version = before.get("version", 0)
        if step.kill and (before.get("state") or {}).get("phase") != step.phase:
            version += 1
        for pod in step.kill:
            self._kill(pod)
        waits = ""
        refused: list[tuple[str, int, str]] = []
        if step.make:
            waits = "" if pods else why_not_enqueued(job, queue, self._nodes())
            if waits:
                self._note_that_it_waits(job, waits)
            else:
                made, refused = self._make_missing(job, pods, step.retry, version)
                self._note_pod_group(job, pods)
                # They are counted once the watch tells of them.
                pods = [*pods, *made]
        elif step.phase in ENDED or step.phase in ENDING:
            self._remove_pod_group(job)
        self._write_status(job, status_of(job, pods, step, version, _age_of(job), _now()))
        if step.action:
            self._say(job, "ExecuteAction", f"Start to execute action {step.action} ")
        if refused:
            return self._try_again(job, refused)
        return bool(waits)

    def _nodes(self) -> list[Object]:
        return self._server.ask("GET", "/api/v1/nodes")["items"]

    def _try_again(self, job: Object, refused: list[tuple[str, int, str]]) -> bool:
        """Say that pods were refused; return whether that is tried again, or the job is given up."""
        uid = job["metadata"]["uid"]
        self._tries[uid] = self._tries.get(uid, 0) + 1
        self._say(job, "FailedCreate", not_created_words(refused), "Warning")
        if self._tries[uid] < TRIES:
            return True
        self._say(job, "ExecuteAction", "Job failed on action SyncJob for retry limit reached")
        path = job_path(job)
        found = self._find(path) or {}
        phase = {"phase": "Terminating", "lastTransitionTime": _now()}
        self._server.ask("PUT", f"{path}/status", {**found, "status": {**found.get("status", {}), "state": phase}})
        return False

    def _complete(self, job: Object) -> Object:
        spec = defaults_of(job)
        return job if spec == job["spec"] else self._server.ask("PATCH", job_path(job), {"spec": spec}, MERGE)

    def _pods_of(self, job: Object) -> list[Object]:
        pods = self._labelled(job["metadata"]["namespace"], job["metadata"]["name"])
        return [pod for pod in pods if job["metadata"]["uid"] in _owners_of(pod)]

    def _labelled(self, namespace: str, name: str) -> list[Object]:
        listed = self._server.ask("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={JOB_LABEL}%3D{name}")
        return listed["items"]

    def _make_missing(
        self, job: Object, pods: list[Object], retry: int, version: int
    ) -> tuple[list[Object], list[tuple[str, int, str]]]:
        """Make the pods that are missing; return them, and what the server said of those that it refused."""
        there = {pod["metadata"]["name"] for pod in pods}
        made: list[Object] = []
        refused: list[tuple[str, int, str]] = []
        for pod in make_pods(job, retry, version, self._scheduler):
            if pod["metadata"]["name"] not in there:
                try:
                    found = self._try("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
                except RefusedError as error:
                    refused.append((pod["metadata"]["name"], error.status, error.message))
                    continue
                made += [found] if found else []
        return made, refused

    def _kill(self, pod: Object) -> None:
        grace = min(self._grace, pod["spec"].get("terminationGracePeriodSeconds", self._grace))
        if not pod["metadata"].get("deletionTimestamp"):
            self._delete(pod, grace)

    def _finish(self, pods: list[Object]) -> None:
        """Remove the pods whose containers have ended: an old kubelet takes ten seconds to see that it can."""
        for pod in pods:
            if has_died(pod):
                self._delete(pod, 0)

    def _delete(self, pod: Object, grace: int) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._try("DELETE", path, {"gracePeriodSeconds": grace, "preconditions": {"uid": pod["metadata"]["uid"]}})

    # Pod groups

    def _note_pod_group(self, job: Object, pods: list[Object]) -> None:
        path = f"/apis/{SCHEDULING}/namespaces/{job['metadata']['namespace']}/podgroups"
        group = self._find(f"{path}/{pod_group_name(job)}")
        if group is None:
            group = self._try("POST", path, make_pod_group(job)) or {}
        status = pod_group_status(job, pods, _now())
        if not pods or _without_times(status) == _without_times(group.get("status") or {}):
            return
        self._try("PATCH", f"{path}/{pod_group_name(job)}/status", {"status": status}, MERGE)
        if "Origin reason" in status["conditions"][0].get("message", ""):
            place = f"{job['metadata']['namespace']}:{job['metadata']['name']}"
            why = why_pending(job, pods)
            self._say(job, "PodGroupPending", f"PodGroup {place} unschedulable, reason: {why}", "Warning")

    def _note_that_it_waits(self, job: Object, why: str) -> None:
        """Make the group of a job that is not let in yet, and say why, once."""
        path = f"/apis/{SCHEDULING}/namespaces/{job['metadata']['namespace']}/podgroups"
        group = self._find(f"{path}/{pod_group_name(job)}") or self._try("POST", path, make_pod_group(job))
        if group is None or (group["metadata"]["uid"], why) in self._said:
            return
        self._said.add((group["metadata"]["uid"], why))
        group["status"] = {"phase": "Pending"}
        self._try("PATCH", f"{path}/{pod_group_name(job)}/status", {"status": group["status"]}, MERGE)
        gang = f"pod group is not ready, {job['spec']['minAvailable']} minAvailable"
        self._say(group, "Unschedulable", why)
        self._say(group, "Unschedulable", f"0/0 tasks in gang unschedulable: {gang}", "Warning")

    def _remove_pod_group(self, job: Object) -> None:
        path = f"/apis/{SCHEDULING}/namespaces/{job['metadata']['namespace']}/podgroups/{pod_group_name(job)}"
        if self._find(path):
            self._try("DELETE", path)

    # The server

    def _write_status(self, job: Object, status: Object) -> None:
        if status != job.get("status"):
            # Refused where a client has written meanwhile: then that is looked at first.
            self._server.ask("PUT", f"{job_path(job)}/status", {**job, "status": status})

    def _say(self, about: Object, reason: str, message: str, kind: str = "Normal") -> None:
        """Make an event about a job or a pod group."""
        namespace, name = about["metadata"]["namespace"], about["metadata"]["name"]
        is_group = about.get("kind") == "PodGroup"
        component = "volcano" if is_group else "vc-controller-manager"
        involved = {
            "namespace": namespace, "name": name, "uid": about["metadata"]["uid"],
            "kind": "PodGroup" if is_group else "Job", "apiVersion": SCHEDULING if is_group else GROUP,
        }  # fmt: skip
        event = {
            "metadata": {"generateName": f"{name}.", "namespace": namespace},
            "involvedObject": involved, "reason": reason, "message": message, "type": kind, "count": 1,
            "firstTimestamp": _now(), "lastTimestamp": _now(), "source": {"component": component},
        }  # fmt: skip
        self._try("POST", f"/api/v1/namespaces/{namespace}/events", event)

    def _find(self, path: str) -> Object | None:
        return self._try("GET", path)

    def _try(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object | None:
        """Return the answer; None where the object is not there, or is there already."""
        try:
            return self._server.ask(method, path, body, kind)
        except RefusedError as error:
            if error.status not in (404, 409):
                raise
            return None


def _owners_of(pod: Object) -> list[str]:
    return [owner["uid"] for owner in pod["metadata"].get("ownerReferences") or []]


def _without_times(status: Object) -> Object:
    conditions = [{**one, "lastTransitionTime": ""} for one in status.get("conditions") or []]
    return {**status, "conditions": conditions}


def _age_of(job: Object) -> float:
    created = datetime.fromisoformat(job["metadata"]["creationTimestamp"].replace("Z", "+00:00"))
    return (datetime.now(timezone.utc) - created).total_seconds()


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _complain(error: Exception) -> None:
    sys.stderr.write(f"{_now()} {type(error).__name__}: {str(error)[:300]}\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Stands in for Volcano's controller.")
    parser.add_argument("kubeconfig")
    parser.add_argument("--scheduler", default="default-scheduler", help="which scheduler places the pods")
    parser.add_argument("--grace", type=int, default=2, help="how many seconds a pod may take to end, at most")
    given = parser.parse_args()
    changed = Changed()
    for path, selector in ((JOBS, ""), (PODS, JOB_LABEL)):
        threading.Thread(target=follow, args=(given.kubeconfig, path, selector, changed), daemon=True).start()
    controller = Controller(Server(given.kubeconfig), given.scheduler, given.grace)
    while True:
        key = changed.take()
        try:
            if controller.bring_on(key):
                changed.add(key, LATER)
        except Exception as error:  # what is wrong with one job stops no other
            _complain(error)
            changed.add(key, RETRY)


if __name__ == "__main__":
    main()
