"""Why pods and jobs are in their states."""

from backend.kubernetes.tables import table

from torchx_tui.backends.kube.causes import needs_events
from torchx_tui.backends.kube.causes import together as join_reasons
from torchx_tui.backends.kube.pods import exit_code
from torchx_tui.backends.kubernetes.volcano.causes import job_message, summarize_events
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO


def events_of(rows):
    return [
        {"reason": reason, "message": message, "lastTimestamp": f"2026-01-01T00:{minute:02}:00Z"}
        for reason, message, minute in rows or ()
    ]


@table("reasons.yaml", "pods", "phase states last status spec events words asks code")
def test_pod_reason(phase, states, last, status, spec, events, words, asks, code):
    containers = [
        {"name": f"c{k}", "image": "one:1", "state": state, "lastState": last or {}}
        for k, state in enumerate(states or ())
    ]
    named = {"containers": [{"name": one["name"]} for one in containers]}
    status = {"phase": phase, "containerStatuses": containers, **(status or {})}
    pod = {"metadata": {}, "status": status, "spec": {**named, **(spec or {})}}
    assert (VOLCANO.pod_reason(pod, events_of(events)), exit_code(pod)) == (words, code)
    assert asks in (None, needs_events(pod))


@table("reasons.yaml", "events", "events text cause")
def test_most_telling_event(events, text, cause):
    assert summarize_events(events_of(events)) == (text, cause)


def test_one_reason_for_several_replicas():
    assert join_reasons([]) == ""
    assert join_reasons([("a", "r/0")]) == "a: r/0"
    assert join_reasons([("a", "r/0"), ("b", "r/1"), ("a", "r/2"), ("a", "r/3")]) == "a: r/0 and 2 more"


def test_message_of_a_job():
    assert job_message({"status": {"state": {"phase": "Failed", "reason": "R", "message": "m"}}}) == "R: m"
    assert job_message({}) == ""
