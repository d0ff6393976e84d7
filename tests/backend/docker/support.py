"""The scheduler local_docker on a real engine, for tests."""

import uuid
from contextlib import suppress

from docker.errors import APIError
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

IMAGE = "busybox:local"


class Docker:
    """A scheduler with a session of its own, by which what it launched is found and removed."""

    def __init__(self, **arguments):
        self.session = f"test-{uuid.uuid4().hex[:12]}"
        self.scheduler = DockerScheduler(self.session, **arguments)
        self.engine = self.scheduler._engine

    @property
    def api(self):
        """The SDK's client of the engine."""
        return self.engine.client().api

    def role(self, script, name="worker", **changes):
        """Return a role whose replicas run a shell script."""
        changes.setdefault("image", IMAGE)
        changes.setdefault("resource", Resource(cpu=1, gpu=0, memMB=64))
        return Role(name, entrypoint="sh", args=["-c", script], **changes)

    def launch(self, script, replicas=1, **changes):
        """Launch a shell script and return the app's id."""
        return self.submit(AppDef("job", [self.role(script, num_replicas=replicas, **changes)]))

    def submit(self, app, **cfg):
        """Launch an app, without pulling images, and return its id."""
        return self.scheduler.submit(app, {"pull": False, **cfg})

    def describe(self, app_id):
        """Return what is known of an app that exists."""
        described = self.scheduler.describe(app_id)
        assert described is not None
        return described

    def wait_for(self, app_id, *states, seconds=PATIENCE):
        """Wait until an app is in one of some states."""

        def reached():
            described = self.describe(app_id)
            return described if described.state in states else None

        return wait_until(reached, f"{app_id}: {states}")

    def ended(self, app_id, seconds=PATIENCE):
        """Wait for an app's end."""
        return self.wait_for(
            app_id, AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED, AppState.UNKNOWN, seconds=seconds
        )

    def running(self, app_id):
        """Wait until an app runs."""
        return self.wait_for(app_id, AppState.RUNNING)

    def containers(self, app_id=""):
        """Return the containers of one app, or of all that this launched."""
        label = f"{labels.APP_ID}={app_id}" if app_id else f"{labels.SESSION}={self.session}"
        return self.api.containers(all=True, filters={"label": label})

    def remove_all(self):
        """Remove everything that this launched."""
        for container in self.containers():
            # A deletion may still be under way.
            with suppress(APIError):
                self.api.remove_container(container["Id"], v=True, force=True)
        self.scheduler.close()
