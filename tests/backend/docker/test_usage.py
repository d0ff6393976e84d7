"""What replicas use is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from support.docker_containers import Replicas, replicas

from torchx_tui.backends.docker.usage import UsageSampler, resident_bytes
from torchx_tui.specs import JobNotFoundError


@pytest.fixture
def app(docker_engine: str) -> Iterator[Replicas]:
    with replicas() as made:
        yield made


def test_cpu_and_memory_of_running_replicas(app: Replicas) -> None:
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


def test_the_cache_of_files_is_not_counted(app: Replicas) -> None:
    app.start("dd if=/dev/zero of=/tmp/file bs=1M count=60 2>/dev/null; sync; sleep 3600", 0)
    sampler = UsageSampler(app.engine)
    time.sleep(2)
    (usage,) = sampler.sample(app.app_id)
    assert usage.memory is not None
    assert usage.memory < 40_000_000


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ({"usage": 100, "stats": {"total_inactive_file": 30, "inactive_file": 1}}, 70),
        ({"usage": 100, "stats": {"inactive_file": 40}}, 60),
        ({"usage": 100, "stats": {"inactive_file": 400}}, 100),
        ({"usage": 100}, 100),
        ({}, None),
    ],
)
def test_both_versions_of_control_groups(memory: dict[str, object], expected: int | None) -> None:
    assert resident_bytes(memory) == expected


def test_many_replicas(app: Replicas) -> None:
    for k in range(12):
        app.start("sleep 3600", k)
    assert [usage.replica for usage in UsageSampler(app.engine).sample(app.app_id)] == list(range(12))


def test_an_app_that_is_not_there(docker_engine: str) -> None:
    with replicas() as app, pytest.raises(JobNotFoundError):
        UsageSampler(app.engine).sample(app.app_id)
