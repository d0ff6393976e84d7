"""Logs of pods that really run."""

import pytest
from support.waiting import wait_until

from .support import job_on


@pytest.fixture
def job(kubernetes_cluster):
    with job_on(kubernetes_cluster) as made:
        yield made


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
