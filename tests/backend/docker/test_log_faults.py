"""Logs that are followed while their engine goes away and comes back."""

import pytest
from support.docker_containers import replicas
from support.following import Follower
from support.waiting import wait_until

from torchx_tui.backends.docker.log_stream import DockerLogStream
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.types import Stream

# Numbered lines on both streams, a thousand a second.
FLOOD = """
import itertools, os, threading, time
def write(fd, name):
    for number in itertools.count():
        os.write(fd, b"%s %d\\n" % (name, number))
        if number % 20 == 0:
            time.sleep(0.04)
threading.Thread(target=write, args=(2, b"err"), daemon=True).start()
write(1, b"out")
"""


@pytest.fixture
def app(own_engine):
    own_engine.start(python=True)
    with replicas() as made:
        yield made


def kept(app, letter):
    """Return the log as the engine has it now."""
    return b"".join(r.data for r in DockerLogStream(app.engine, app.app_id, "worker", 0) if r.stream == letter)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_no_line_is_lost_when_the_engine_restarts(app, own_engine, how):
    app.python(FLOOD, restart_policy={"Name": "always"})
    scheduler = DockerScheduler("test", app.engine)
    follower = Follower(lambda cursor: scheduler.log_stream(app.app_id, "worker", 0, Stream.COMBINED, cursor))
    for round_number in range(2):
        begun = follower.size
        wait_until(lambda begun=begun: follower.size > begun + 10_000, f"lines in round {round_number}")
        own_engine.kill() if how == "kill" else own_engine.stop()
        cuts = len(follower.cuts)
        wait_until(lambda cuts=cuts: len(follower.cuts) > cuts, "the cut")
        own_engine.start()
    begun = follower.size
    wait_until(lambda: follower.size > begun + 10_000, "lines after all")
    (container,) = app.client.containers.list()
    app.client.api.update_container(str(container.id), restart_policy={"Name": "no"})  # type: ignore[bad-argument-type]
    container.kill()
    follower.join()
    for letter in "oe":
        assert follower.of(letter) == kept(app, letter)
    assert follower.of("c").count(b"was restarted") == 2
    assert "Docker engine" in follower.cuts[0]


@pytest.mark.slow
def test_lines_go_on_when_the_engine_is_back(app, own_engine):
    """An iterator of lines takes its log up by itself."""
    app.start("i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.01; done")
    got = []
    scheduler = DockerScheduler("test", app.engine)
    for line in scheduler.log_iter(app.app_id, "worker", should_tail=True):
        got.append(line)
        if len(got) == 20:
            own_engine.kill()
            own_engine.start()
    # Without live-restore the container has ended with its engine.
    assert got == [f"line {number}\n" for number in range(1, len(got) + 1)]
    assert got == list(scheduler.log_iter(app.app_id, "worker"))
