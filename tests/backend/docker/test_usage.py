"""What replicas use is measured."""

import threading
import time

import pytest
from support.scripted_engine import listed, refused
from support.tables import tables

from torchx_tui.backends.docker.usage import UsageSampler, resident_bytes
from torchx_tui.backends.types import ReplicaUsage
from torchx_tui.specs.errors import JobNotFoundError

table = tables(__file__)


def test_cpu_and_memory_of_running_replicas(app):
    app.python("held = bytearray(60_000_000)\nwhile True: pass", 0, nano_cpus=500_000_000, mem_limit="256m")
    app.start("sleep 3600", 1)
    app.start("true", 2).wait()
    sampler = UsageSampler(app.engine)
    first = sampler.sample(app.app_id)
    assert [(usage.role, usage.replica, usage.cpu) for usage in first] == [("worker", 0, None), ("worker", 1, None)]
    time.sleep(1.5)
    busy, idle = sampler.sample(app.app_id)
    assert busy.cpu is not None
    assert 0.1 < busy.cpu < 0.8
    assert busy.cpu_total == 0.5
    assert busy.memory is not None
    assert 60_000_000 < busy.memory < 120_000_000
    assert busy.memory_total == 256 << 20
    assert idle.cpu is not None
    assert idle.cpu < 0.05
    assert idle.memory is not None
    assert idle.memory < 10_000_000


@table("both versions of control groups", "memory expected")
def test_both_versions_of_control_groups(memory, expected):
    assert resident_bytes(memory) == expected


# Where an engine answers as it is told to


def told(second, cpu_seconds, online=8, **memory):
    """Return what an engine tells of a container's use at a second."""
    used = {"total_usage": int(cpu_seconds * 1e9), "percpu_usage": [1, 2]}
    return {
        "read": f"2026-01-01T00:00:{second:012.9f}Z",
        "cpu_stats": {"cpu_usage": used, "online_cpus": online},
        "memory_stats": memory,
    }


def answer(scripted, k, stats, **host):
    scripted.gives(f"/containers/c{k}/stats", stats)
    scripted.gives(f"/containers/c{k}/json", {"HostConfig": host})


def test_cpu_is_what_was_used_between_two_samples(scripted):
    scripted.has(*(listed(k) for k in range(5)), listed(5, "paused"), listed(6, "exited"), listed(7, "created"))
    limits = ({"NanoCpus": 500_000_000}, {"CpuQuota": 50_000}, {"CpuQuota": 300_000, "CpuPeriod": 200_000},
              {"CpuQuota": -1}, {})  # fmt: skip
    for k, host in enumerate(limits):
        answer(scripted, k, told(1, 10, usage=100, limit=1000), **host)
    # One that has ended meanwhile, and the others are told of.
    scripted.answers["GET", "/containers/c5/stats"] = refused(409, "it is not running")
    sampler = UsageSampler(scripted.engine())
    first = sampler.sample("app-x")
    assert first == [
        ReplicaUsage("worker", k, cpu=None, cpu_total=total, memory=100, memory_total=1000)
        for k, total in enumerate((0.5, 0.5, 1.5, 8, 8))
    ]
    # Two seconds of two; none; of no time; of a container that was started again; half of a second of a half.
    later = [told(3, 12), told(3, 10), told(1, 11), told(3, 1), told(1.5, 10.5, usage=7, limit=0)]
    for k, stats in enumerate(later):
        answer(scripted, k, stats)
    second = sampler.sample("app-x")
    assert [one.cpu for one in second] == [1.0, 0.0, None, None, 1.0]
    assert [one.cpu_total for one in second] == [0.5, 0.5, 1.5, 8, 8]
    assert [(one.memory, one.memory_total) for one in second[3:]] == [(None, None), (7, None)]
    assert all(asked.params == {"stream": "False", "one-shot": "True"} for asked in scripted.asked
               if asked.path.endswith("/stats"))  # fmt: skip


def test_cores_are_counted_where_the_engine_does_not_say(scripted):
    scripted.has(listed(0), listed(1))
    answer(scripted, 0, told(1, 1, online=None))
    answer(scripted, 1, {"read": "2026-01-01T00:00:01Z"})
    counted, unknown = UsageSampler(scripted.engine()).sample("app-x")
    assert (counted.cpu_total, unknown.cpu_total, unknown.memory) == (2, None, None)


def test_an_app_that_has_ended_uses_nothing(scripted):
    scripted.has(listed(0, "exited"))
    assert UsageSampler(scripted.engine()).sample("app-x") == []
    scripted.has()
    with pytest.raises(JobNotFoundError):
        UsageSampler(scripted.engine()).sample("app-x")


def test_no_usage_of_an_engine_that_goes_away(scripted, monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    scripted.has(listed(0), listed(1))
    for k in range(2):
        scripted.answers["GET", f"/containers/c{k}/stats"] = lambda asked: None
    assert UsageSampler(scripted.engine()).sample("app-x") == []
    # No thread writes a traceback onto the terminal.
    assert raised == []
