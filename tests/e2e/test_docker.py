"""Jobs in containers of a real engine, by keys alone."""

from __future__ import annotations

import docker
import pytest
from actions import launch, live_through, look_inside, open_form, submit
from support.component_files import ComponentFile

pytestmark = pytest.mark.slow

# In the order of the form.
JOB = {"steps": "600", "num_replicas": "4", "step_seconds": "1", "image": "python:local"}
SERVER = '''
def server() -> AppDef:
    """Serve files, and say where.
    """
    role = Role("web", "python:local", entrypoint="python3", args=["-m", "http.server", "8000"], num_replicas=2)
    role.port_map = {"http": 8000}
    role.resource = Resource(cpu=1, gpu=0, memMB=128)
    return AppDef("server", [role])
'''
HEADER = "from torchx_tui.specs import AppDef, Resource, Role\n"


def engine_holds(host: str) -> dict[str, set[str]]:
    """Return the names of an engine's containers, networks and volumes."""
    client = docker.DockerClient(base_url=host)
    try:
        return {
            "containers": {str(one.name) for one in client.containers.list(all=True)},
            "networks": {str(one.name) for one in client.networks.list()},
            "volumes": {str(one.name) for one in client.volumes.list()},
        }
    finally:
        client.close()


@pytest.fixture
def app(terminal, own_engine):
    """Open the dashboard beside an engine that has run nothing yet."""
    own_engine.start(python=True)
    return terminal(wait=r"✓ +docker +Docker \d")


def test_launch_follow_cancel_relaunch_edit_and_delete(app, own_engine, tmp_path):
    before = engine_holds(own_engine.host)
    launch(app, "demo.train", JOB)
    app.wait(r"● Running +demo-train\b.* +docker +4/4")
    look_inside(app, r"-trainer-2")
    # What the engine itself says.
    app.wait(r"^ Id: [0-9a-f]{64}")
    app.press("escape", wait="Every replica|Replicas")
    app.press("escape", wait="STATE")
    live_through(app, "docker")
    after = engine_holds(own_engine.host)
    assert after["containers"] == before["containers"] == set()
    assert after["volumes"] == before["volumes"]
    # TorchX's own network is everybody's, and stays.
    assert after["networks"] - before["networks"] <= {"torchx"}
    # Ports are published.
    ComponentFile(tmp_path / "jobs.py").write(SERVER, HEADER)
    open_form(app, "jobs.py:server")
    submit(app)
    app.wait(r"● Running +server\b.* +docker +2/2")
    app.press("enter", wait="Replicas")
    app.wait(r"port +\d+ for 8000 +http")
    app.press("tab", wait="━ Replicas")
    app.press("y", wait="clipboard|Wrote")
