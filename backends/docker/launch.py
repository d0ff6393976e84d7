"""Starts the containers of an app, or leaves nothing behind."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from typing import Any

from ...specs import SchedulerError
from ..docker_engine.client import Engine
from ..shared.exit_reasons import some_of
from ..shared.parallel import parallel_map
from ..shared.progress import current_progress
from .containers import find_containers
from .network import ensure_network, is_network_trouble, names_of
from .request import DockerContainer, DockerJob

_NAME_TAKEN = re.compile(r'container name "/?(?P<name>[^"]+)" is already in use by container "?(?P<id>[0-9a-f]{12})')
_PORT = re.compile(r"(?:Bind for |listen \w+ )(?P<port>\S+?:\d+)[: ].*(?:already allocated|already in use)")
_NO_SOURCE = re.compile(r"bind source path does not exist: (?P<path>.+?)\s*$")
_NO_IMAGE = re.compile(r"No such image: (?P<image>\S+)")


def refusal_words(said: str, container: DockerContainer) -> str:
    """Return why a container was not started, with what to do; what the engine said where that is not understood.

    Args:
        said: the engine's answer.
        container: what was to be started.
    """
    command = container.command[0] if container.command else ""
    if "executable file not found" in said or ("exec:" in said and "no such file or directory" in said):
        return f"no such command: {command}: the image {container.image} does not have it"
    if "exec:" in said and "permission denied" in said:
        return f"{command} cannot be run: it is not an executable file in the image {container.image}"
    if "could not select device driver" in said:
        return (
            "there is no GPU runtime on the engine's machine: install the NVIDIA Container Toolkit there, "
            "or ask for gpu=0"
        )
    if found := _NO_IMAGE.search(said):
        return f"there is no image {found['image']}: it could not be pulled, or pulling is off; check its name"
    if found := _NAME_TAKEN.search(said):
        return f"the name {found['name']} is taken by another container: `docker rm {found['id']}` frees it"
    if found := _PORT.search(said):
        return f"port {found['port']} is in use: choose another one"
    if found := _NO_SOURCE.search(said):
        return f"the mount's source {found['path']} does not exist on the engine's machine: create it there"
    if "Range of CPUs" in said:
        return f"{said.rstrip('.')}: ask for fewer"
    if "error gathering device information" in said:
        return f"a device is missing on the engine's machine: {said.rpartition('device information while adding')[2]}"
    return said


logger = logging.getLogger(__name__)


class Launch:
    """One launch: creates all containers, then starts them, the first one before the others, as TorchX does.

    Args:
        engine: the engine.
        job: what to start.
        added_labels: labels that are known now only, such as the time.
    """

    def __init__(self, engine: Engine, job: DockerJob, added_labels: Mapping[str, str]) -> None:
        self._engine = engine
        self._job = job
        self._added_labels = dict(added_labels)
        self._created: dict[str, str] = {}
        self._lock = threading.Lock()

    def run(self) -> None:
        """Start the app.

        Raises:
            SchedulerError: it was not started, and nothing of it is left; the message says which replica and why.
            LaunchCancelledError: nobody wants it any more; nothing of it is left.
        """
        containers = self._job.containers
        progress = current_progress()
        total = len(containers)
        try:
            for name in names_of(str(one.kwargs.get("network") or "") for one in containers):
                ensure_network(self._engine, name)
            # All are there before the first one starts: one that is missing later was removed.
            self._each(self._create, containers, lambda count: progress.report(f"creating {count} of {total}"))
            # The others look the first one up by its name.
            self._each(self._start, containers[:1], lambda count: progress.report(f"starting 1 of {total}"))
            self._each(self._start, containers[1:], lambda count: progress.report(f"starting {count + 1} of {total}"))
        except BaseException as error:
            left = self._remove_all()
            if left and isinstance(error, SchedulerError):
                raise SchedulerError(f"{error}. Left behind: {some_of(left)}: remove with `docker rm -f`") from error
            raise

    def _each(self, act: Any, containers: list[DockerContainer], report: Any) -> None:
        def on_done(count: int, error: Exception | None) -> None:
            if error is not None:
                raise error
            report(count)

        parallel_map(act, containers, on_done)

    def _create(self, one: DockerContainer) -> None:
        kwargs: dict[str, Any] = {**one.kwargs, "labels": {**(one.kwargs.get("labels") or {}), **self._added_labels}}
        try:
            with self._engine.in_words():
                made = self._engine.client().containers.create(one.image, one.command, **kwargs)
        except SchedulerError as error:
            raise self._refused(one, error) from error
        with self._lock:
            self._created[one.where] = str(made.id)

    def _start(self, one: DockerContainer) -> None:
        container_id = self._created[one.where]
        try:
            try:
                self._ask_to_start(container_id)
            except SchedulerError as error:
                if not is_network_trouble(error):
                    raise
                # Someone tidied up between its making and now, or makes it as well.
                for name in names_of([str(one.kwargs.get("network") or "")]):
                    ensure_network(self._engine, name)
                self._ask_to_start(container_id)
        except SchedulerError as error:
            raise self._refused(one, error) from error

    def _ask_to_start(self, container_id: str) -> None:
        with self._engine.in_words():
            self._engine.client().api.start(container_id)

    def _refused(self, one: DockerContainer, error: SchedulerError) -> SchedulerError:
        words = refusal_words(str(error), one)
        return type(error)(f"{self._job.app_id} was not launched: {one.where}: {words}")

    def _remove_all(self) -> list[str]:
        """Remove all containers of the app, with their anonymous volumes; return the ids of what could not be."""
        left: list[str] = []

        def remove(container_id: str) -> None:
            try:
                with self._engine.in_words():
                    self._engine.client().api.remove_container(container_id, v=True, force=True)
            except SchedulerError as error:
                logger.warning("%s of %s is left behind: %s", container_id, self._job.app_id, error)
                left.append(container_id[:12])

        try:
            # Asked for anew: the answer to a creation may have been lost.
            created = [one["Id"] for one in find_containers(self._engine, self._job.app_id)]
        except SchedulerError:
            created = list(self._created.values())
        parallel_map(remove, created)
        return left
