"""Logs that are followed while the way to the server is cut, and while its node rotates them."""

import json
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.api_proxy import api_proxy
from support.cut_proxy import cut_proxy
from support.kubernetes_cluster import new_namespace
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.kubernetes.scheduler import create_scheduler
from torchx_tui.specs.errors import BackendUnavailableError

from .support import job_on

# Numbered lines, some hundreds a second, until a file is there.
FLOOD = """
import itertools, os, time
for number in itertools.count():
    print("line", number, flush=True)
    if number % 10 == 0:
        time.sleep(0.02)
        if os.path.exists("/end"):
            break
"""


@pytest.fixture
def proxy(kubernetes_cluster, tmp_path, monkeypatch):
    """A way to the server that can be cut; KUBECONFIG leads through it."""
    address = urlsplit(kubernetes_cluster.host)
    assert address.hostname
    assert address.port
    with cut_proxy(address.hostname, address.port) as made:
        config = json.loads(Path(kubernetes_cluster.kubeconfig).read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://{address.hostname}:{made.port}"
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield made


@pytest.fixture
def job(proxy, kubernetes_cluster):
    with job_on(kubernetes_cluster) as made:
        yield made


def kept(job):
    return b"".join(record.data for record in job.stream())


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_when_the_way_is_cut(job, proxy):
    job.python(FLOOD)
    follower = job.follow()
    for round_number in range(3):
        begun = follower.size
        wait_until(lambda begun=begun: follower.size > begun + 20_000, f"lines in round {round_number}")
        cuts = len(follower.cuts)
        proxy.cut()
        wait_until(lambda cuts=cuts: len(follower.cuts) > cuts, "the cut")
        proxy.mend()
    scheduler = create_scheduler("torchx")
    scheduler.run_beside(job.app_id, "worker", 0, ["touch", "/end"], PATIENCE)
    scheduler.close()
    follower.join()
    data = follower.data
    assert data == b"".join(b"line %d\n" % number for number in range(data.count(b"\n")))
    assert data == kept(job)
    assert "API server" in follower.cuts[0]


@pytest.mark.slow
def test_lines_go_on_when_the_server_is_back(job, proxy):
    """An iterator of lines takes its log up by itself."""
    job.start("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.5; done")
    got = []
    for line in job.scheduler.log_iter(job.app_id, "worker", should_tail=True):
        got.append(line)
        if len(got) in (2, 5):
            proxy.cut()
            proxy.mend()
    assert got == [f"line {number}\n" for number in range(1, 10)]


@pytest.mark.slow
def test_no_line_is_lost_when_node_and_server_are_killed(own_cluster):
    own_cluster.start(node=True)
    with new_namespace(own_cluster.kubeconfig) as cluster, job_on(cluster) as job:
        job.python(FLOOD)
        follower = job.follow()
        for program in ("kubelet", "kube-apiserver"):
            begun = follower.size
            wait_until(lambda begun=begun: follower.size > begun + 20_000, f"lines before {program} is killed")
            cuts = len(follower.cuts)
            own_cluster.kill(program)
            wait_until(lambda cuts=cuts: len(follower.cuts) > cuts, f"the cut when {program} is killed")
            own_cluster.start()
        begun = follower.size
        wait_until(lambda: follower.size > begun + 20_000, "lines after all")
        follower.close()
        follower.join()
    data = follower.data
    assert data == b"".join(b"line %d\n" % number for number in range(data.count(b"\n")))
    assert any("the node localhost of worker/0 does not give its log" in cut for cut in follower.cuts)


def test_a_server_that_is_away_is_said_in_words(job, proxy):
    job.start("echo one; sleep 600")
    reading = job.stream()
    assert next(reading).data == b"one\n"
    proxy.cut()
    with pytest.raises(BackendUnavailableError, match="closed the connection"):
        next(reading)
    with pytest.raises(BackendUnavailableError):
        next(job.stream(cursor=reading.cursor))


def test_closing_64_streams_ends_their_connections_at_once(job, proxy):
    job.start("echo one; sleep 600")
    job.wait_until_running()
    followers = [job.follow() for _ in range(64)]
    wait_until(lambda: all(follower.data == b"one\n" for follower in followers), "the line in all of them")
    # One each, beside the few that are for questions.
    assert 64 <= proxy.count <= 64 + 8
    for follower in followers:
        follower.close()
    wait_until(lambda: proxy.count <= 8, "the connections end", PATIENCE)
    for follower in followers:
        follower.join()


def test_a_followed_replica_costs_one_request(kubernetes_cluster, tmp_path, monkeypatch):
    with api_proxy(kubernetes_cluster, tmp_path) as counting:
        monkeypatch.setenv("KUBECONFIG", str(counting.kubeconfig))
        with job_on(kubernetes_cluster) as job:
            job.start("echo one; sleep 600", replicas=4)
            job.wait_until_running()
            followers = [job.follow(k) for k in range(4) for _ in range(4)]
            wait_until(lambda: all(follower.data == b"one\n" for follower in followers), "the line in all of them")
            assert len(counting.requests(lambda asked: asked.is_followed)) == 16
            # The job and its pods, which all of them share.
            assert len(counting.requests(lambda asked: not asked.is_followed)) <= 2 * 3
            # While they are followed nothing is asked.
            counting.forget()
            time.sleep(2)
            assert not counting.requests()
            for follower in followers:
                follower.close()
                follower.join()


@pytest.mark.slow
def test_a_real_rotation_doubles_no_line(job):
    script = "for number in range(100_000): print('x' * 180, number, flush=True)"
    job.python(script)
    follower = job.follow()
    follower.join()
    lines = follower.data.splitlines()
    assert not follower.cuts
    # What an old node drops in the midst of an answer, nobody can know: some lines are cut off or run together there.
    found = [re.fullmatch(rb"x{180} (\d{1,5})", line) for line in lines]
    # The line before such a place may have half a number.
    numbers = [int(match[1]) for match, after in zip(found, [*found[1:], True], strict=True) if match and after]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 99_999
    assert found.count(None) < len(found) / 100
