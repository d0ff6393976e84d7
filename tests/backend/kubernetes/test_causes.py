"""Why a pod waits or has failed, in words, as its status and its events have it."""

from __future__ import annotations

from typing import Any

import pytest

from torchx_tui.backends.kubernetes.causes import exit_code, needs_events, pod_reason, summarize_events, together

_UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


def pending(*states: dict[str, Any], key: str = "containerStatuses", **status: Any) -> dict[str, Any]:
    found = [{"name": f"c{number}", "image": "one:1", "state": state} for number, state in enumerate(states)]
    return {"status": {"phase": "Pending", key: found, **status}, "spec": {}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


@pytest.mark.parametrize(
    ("pod", "words", "asks"),
    [
        (pending(waiting("ContainerCreating")), "its container is being created", True),
        (pending(waiting("PodInitializing")), "its container is being created", True),
        (pending({"waiting": {}}), "its container is being created", True),
        (pending({"running": {}}), "its container is being created", True),
        (pending(waiting("CreateContainerError", "no")), "its container cannot be created: no", False),
        (pending(waiting("ContainerCreating"), waiting("Odd", "x")), "Odd: x", False),
        (pending(waiting("ErrImagePull", "no")), "image one:1 cannot be pulled: no (ErrImagePull)", False),
        (pending(waiting("ImagePullBackOff")), "image one:1 cannot be pulled: ImagePullBackOff", True),
        (pending({"terminated": {"exitCode": 0}}), "its container is being created", True),
        (
            pending({"terminated": {"exitCode": 3}}, key="initContainerStatuses"),
            "the container c0, which prepares it, failed: exit 3",
            True,
        ),
        (pending(conditions=[_UNSCHEDULED]), "cannot be scheduled: 0/1 nodes are available", False),
        (pending(conditions=[{**_UNSCHEDULED, "message": ""}]), "cannot be scheduled", True),
        (pending(conditions=[{**_UNSCHEDULED, "status": "True"}]), "waits for a node", True),
        (pending(conditions=[{**_UNSCHEDULED, "type": "Ready"}]), "waits for a node", True),
        (
            pending(conditions=[{**_UNSCHEDULED, "reason": "SchedulingGated", "message": "by x"}]),
            "held back by a scheduling gate: by x",
            False,
        ),
        ({"status": {"phase": "Pending"}, "spec": {"nodeName": "n"}}, "", True),
    ],
)
def test_a_pod_that_waits(pod, words, asks):
    assert (pod_reason(pod), needs_events(pod)) == (words, asks)


def test_one_reason_for_several_replicas():
    assert together([]) == ""
    assert together([("a", "r/0")]) == "a: r/0"
    assert together([("a", "r/0"), ("b", "r/1"), ("a", "r/2"), ("a", "r/3")]) == "a: r/0 and 2 more"


def test_what_gives_no_words_is_told_without_any():
    waits = {"state": {"waiting": {"message": ""}}}
    assert pod_reason({"status": {"phase": "Running", "containerStatuses": [waits]}}) == ""
    assert summarize_events([{"reason": "FailedMount"}]) == ("FailedMount:", True)


def test_the_exit_code_of_a_replica_is_that_of_its_pods_first_container():
    # Servers list the states by the names of the containers.
    states = [{"name": name, "state": {"terminated": {"exitCode": code}}} for name, code in (("a", 7), ("worker", 3))]
    spec = {"containers": [{"name": "worker"}, {"name": "a"}]}
    assert exit_code({"spec": spec, "status": {"containerStatuses": states}}) == 3
