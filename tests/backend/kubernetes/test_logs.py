"""Logs of pods that really run."""

from __future__ import annotations

import itertools
import time

import pytest
from support.waiting import wait_until

from torchx_tui.logs.source.stream import PartsCursor

from .support import job_on


@pytest.fixture
def job(kubernetes_cluster):
    with job_on(kubernetes_cluster) as made:
        yield made


def test_records_have_the_times_of_their_lines(job):
    before = time.time()
    job.start("echo first; sleep 0.5; echo second; sleep 0.5; printf 'no end'")
    records = list(job.stream())
    assert [record.data for record in records] == [b"first\n", b"second\n", b"no end"]
    assert {record.stream for record in records} == {"c"}
    times = [record.time or 0.0 for record in records]
    assert before - 2 < times[0]
    assert all(0.3 < later - earlier < 30 for earlier, later in itertools.pairwise(times))


LONG_LINES = """
import os
os.write(1, b"a\\xffb\\0\\xc3\\n")
for size in (16383, 16384, 16385, 50000):
    os.write(1, ("\\u00e9" * (size // 2) + "x" * (size % 2)).encode() + b"\\n")
"""


def test_bytes_and_long_lines_survive(job):
    job.python(LONG_LINES).wait()
    lines = [b"a\xffb\0\xc3\n"]
    for size in (16383, 16384, 16385, 50000):
        lines.append(("\u00e9" * (size // 2) + "x" * (size % 2)).encode() + b"\n")
    assert b"".join(r.data for r in job.stream()) == b"".join(lines)
    assert job.lines() == [line.decode("utf-8", "replace") for line in lines]


def test_a_log_is_taken_up_where_it_was_left(job):
    job.python("for i in range(3000): print(i, flush=True)").wait()

    def read_whole():
        # On a busy machine the end of a log is written after the end of its container is known.
        records = list(job.stream())
        return records if records and records[-1].data.endswith(b"2999\n") else None

    whole = wait_until(read_whole, "the last line")
    data, cursor, record = b"", None, whole[0]
    while record is not None:
        reading = job.stream(cursor=cursor)
        for _ in range(max(1, len(whole) // 15)):
            record = next(reading, None)
            data += record.data if record else b""
        cursor = reading.cursor
        assert isinstance(cursor, PartsCursor)
        reading.close()
    assert list(map(int, data.split())) == list(range(3000))


def test_a_pod_that_waits_says_why_and_then_goes_on(job):
    cluster = job.cluster
    variables = [{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "word"}}}]
    job.start("echo $WORD", container={"env": variables})
    follower = job.follow()
    wait_until(lambda: b"waits: " in follower.data, "the reason")
    assert b"the ConfigMap late does not exist" in follower.data
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    cluster.request("POST", path, {"metadata": {"name": "late"}, "data": {"word": "here"}})
    follower.join()
    assert follower.data.endswith(b"\nhere\n")
    assert follower.data.count(b"waits: ") == 1
    assert job.lines() == ["here\n"]


def test_a_pod_that_is_deleted_under_a_tail(job):
    job.start("echo here; sleep 600")
    follower = job.follow()
    wait_until(lambda: follower.data, "the first line")
    job.delete_pod()
    wait_until(lambda: follower.data.count(b"here\n") == 2, "the line of the new pod")
    assert b"was restarted in a new pod" in follower.data
    follower.close()
    follower.join()


def beside(script):
    image = {"image": "busybox:local"}
    return {
        "initContainers": [{"name": "prepare", "command": ["sh", "-c", "echo prepared"], **image}],
        "containers": [
            {"name": "worker-0", "command": ["sh", "-c", f"echo main; {script}"], **image},
            {"name": "side", "command": ["sh", "-c", f"echo beside; {script}"], **image},
        ],
    }


def test_init_containers_come_first_and_sidecars_are_left_out(job):
    job.start("", pod=beside("sleep 1; echo end"))
    follower = job.follow()
    follower.join()
    lines = [line for line in follower.data.decode().splitlines() if "waits" not in line]
    assert lines == ["prepare prepared", "main", "end"]
    assert job.lines() == [line + "\n" for line in lines]
