"""Recorded watches of jobs from their launch to their end: what a user reads after each event, and by watches alone."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from backend.kubernetes.samples import chosen, described, letters
from backend.kubernetes.tables import table
from support.scripted_server import Stream, scripted_server
from support.waiting import wait_until

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO

FOLDER = Path(__file__).parent / "sequences"


class Step(NamedTuple):
    """An event of a watch, and what the server has then."""

    at: float
    type: str
    object: dict[str, Any]
    job: dict[str, Any]
    pods: list[dict[str, Any]]
    events: list[dict[str, Any]]


def kind_of(name):
    return VOLCANO if name.startswith("volcano") else BATCH


def steps(name):
    """Yield the events of a sequence until its job is deleted; each change has a version of its own."""
    there = {"Job": {}, "Pod": {}, "Event": {}, "PodGroup": {}}
    for version, line in enumerate((FOLDER / f"{name}.jsonl").read_text().splitlines(), 1):
        found = json.loads(line)
        made, objects = found["object"], there[found["object"]["kind"]]
        made["metadata"]["resourceVersion"] = str(version)
        objects[made["metadata"]["uid"]] = made
        if found["type"] == "DELETED":
            del objects[made["metadata"]["uid"]]
        if there["Job"]:
            (job,) = there["Job"].values()
            at = datetime.fromisoformat(found["at"].replace("Z", "+00:00")).timestamp()
            yield Step(at, found["type"], made, job, [*there["Pod"].values()], [*there["Event"].values()])


def text(response):
    return f"{response.state.name} {letters(response)} {response.msg}"


@table("sequences.yaml", "sequences", "texts")
def test_what_is_read_after_each_event(texts, request):
    name = request.node.callspec.id
    read = [
        text(described(kind_of(name), {"job": step.job, "pods": step.pods, "events": step.events}, step.at))
        for step in steps(name)
    ]
    assert [one for one, before in zip(read, [None, *read], strict=False) if one != before] == texts


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.jsonl")))
def test_watches_show_what_a_first_look_shows(name):
    with scripted_server() as server:
        kind, now = kind_of(name), {}
        namespace = next(steps(name)).job["metadata"]["namespace"]
        lists = {kind.path(namespace): "jobs", pods_path(namespace): "pods", events_path(namespace): "events"}
        streams = {}

        def answer(asked):
            if "watch" in asked.params:
                made = streams[asked.path, asked.params.get("labelSelector", "")] = Stream()
                return 200, made
            return 200, {"items": chosen(now[lists[asked.path]], asked), "metadata": {"resourceVersion": "1"}}

        for path in lists:
            server.answers["GET", path] = answer
        server.serves(f"{kind.group}/{kind.version}")
        scheduler = KubernetesScheduler("test", server.client(), namespace=namespace)
        try:
            follow(scheduler, server, streams, kind, name, now)
        finally:
            scheduler.close()
            for stream in streams.values():
                stream.end()


def follow(scheduler, server, streams, kind, name, now):
    """Send each event to the watches; compare the page and the row with what a first look shows."""
    for number, step in enumerate(steps(name)):
        now |= {"jobs": [step.job], "pods": step.pods, "events": step.events}
        metadata, app_id = step.job["metadata"], kind.app_id(step.job)
        server.gives(kind.path(metadata["namespace"], metadata["name"]), step.job)
        path = {"Job": kind.path(metadata["namespace"]), "Pod": pods_path(metadata["namespace"])}.get(
            step.object["kind"]
        )
        if number == 0:
            scheduler.subscribe(lambda: None)
            scheduler.list()
            scheduler.describe(app_id)
            wait_until(lambda: len(streams) >= 2, "the watches")
        elif path is not None:
            for (watched, _), stream in list(streams.items()):
                if watched == path:
                    stream.put({"type": step.type, "object": step.object})
            expected = text(described(kind, {"job": step.job, "pods": step.pods, "events": step.events}))
            # How long a job has waited for its controller is part of the sentence.
            begin = expected.split(" for ")[0]
            shown = partial(scheduler.describe, app_id)
            wait_until(lambda shown=shown, begin=begin: text(shown()).startswith(begin), expected)
            state = expected.split()[0]
            wait_until(lambda state=state: scheduler.list()[0].state.name == state, f"the row to be {state}")
