"""Stands in for Volcano's controller and webhook where the real ones cannot be had.

usage: volcano_stand_in.py KUBECONFIG [--scheduler NAME] [--grace SECONDS]

It makes the pods of jobs, with the labels, annotations and environment of the real one's; keeps their status; carries
out policies; kills the pods of a job that a client aborted. A job of a queue that does not exist is left alone. It has
no gang scheduling: the pods that have room run, and the job is Pending until the others have it too. It knows no
limits of queues and no Command objects.
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
    owner_of,
    pod_group_name,
    pod_group_status,
    why_pending,
)
from volcano_states import ENDED, ENDING, has_died, next_step, status_of

JOBS = f"/apis/{GROUP}/jobs"
PODS = "/api/v1/pods"
JOB_LABEL = "volcano.sh/job-name"
# Seconds until something that failed is tried again.
RETRY = 0.3
# Seconds until it is looked again whether a job's queue is there.
LATER = 1.0
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
        self._queues: set[str] = set()

    def bring_on(self, key: Key) -> bool:
        """Do what a job needs next; return whether it waits for something that nobody tells of."""
        namespace, name = key
        job = self._find(f"/apis/{GROUP}/namespaces/{namespace}/jobs/{name}")
        if job is None or job["metadata"].get("deletionTimestamp"):
            self._finish(self._labelled(namespace, name))
            return False
        if not self._has_queue(job):
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
        if step.make:
            made = self._make_missing(job, pods, step.retry, version)
            self._note_pod_group(job, pods)
            # They are counted once the watch tells of them.
            pods = [*pods, *made]
        elif step.phase in ENDED or step.phase in ENDING:
            self._remove_pod_group(job)
        self._write_status(job, status_of(job, pods, step, version, _age_of(job), _now()))
        if step.action:
            self._say(job, "ExecuteAction", f"Start to execute action {step.action} ")
        return False

    def _has_queue(self, job: Object) -> bool:
        queue = job["spec"].get("queue") or "default"
        if queue not in self._queues and self._find(f"/apis/{SCHEDULING}/queues/{queue}"):
            self._queues.add(queue)
        return queue in self._queues

    def _complete(self, job: Object) -> Object:
        spec = defaults_of(job)
        return job if spec == job["spec"] else self._server.ask("PATCH", job_path(job), {"spec": spec}, MERGE)

    def _pods_of(self, job: Object) -> list[Object]:
        pods = self._labelled(job["metadata"]["namespace"], job["metadata"]["name"])
        return [pod for pod in pods if job["metadata"]["uid"] in _owners_of(pod)]

    def _labelled(self, namespace: str, name: str) -> list[Object]:
        listed = self._server.ask("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={JOB_LABEL}%3D{name}")
        return listed["items"]

    def _make_missing(self, job: Object, pods: list[Object], retry: int, version: int) -> list[Object]:
        there = {pod["metadata"]["name"] for pod in pods}
        made: list[Object] = []
        for pod in make_pods(job, retry, version, self._scheduler):
            if pod["metadata"]["name"] not in there:
                found = self._try("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)
                made += [found] if found else []
        return made

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

    def _remove_pod_group(self, job: Object) -> None:
        path = f"/apis/{SCHEDULING}/namespaces/{job['metadata']['namespace']}/podgroups/{pod_group_name(job)}"
        if self._find(path):
            self._try("DELETE", path)

    # The server

    def _write_status(self, job: Object, status: Object) -> None:
        if status != job.get("status"):
            # Refused where a client has written meanwhile: then that is looked at first.
            self._server.ask("PUT", f"{job_path(job)}/status", {**job, "status": status})

    def _say(self, job: Object, reason: str, message: str, kind: str = "Normal") -> None:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        about = {
            "namespace": namespace,
            **{key: owner_of(job)[0][key] for key in ("apiVersion", "kind", "name", "uid")},
        }
        event = {
            "metadata": {"generateName": f"{name}.", "namespace": namespace},
            "involvedObject": about, "reason": reason, "message": message, "type": kind, "count": 1,
            "firstTimestamp": _now(), "lastTimestamp": _now(), "source": {"component": "vc-controller-manager"},
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
