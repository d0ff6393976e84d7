"""Creates, starts, stops and removes the containers of apps."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

from ...specs.errors import JobNotFoundError, SchedulerError
from ..docker_engine.client import Engine
from ..docker_engine.images import LOCAL_REGISTRY, is_short_name
from ..shared.exit_reasons import some_of
from ..shared.parallel import parallel_map
from ..shared.progress import current_progress
from .containers import ContainerSummary, find_containers, replica_number, role_name
from .networks import ensure_network, is_network_error, networks_to_create, remove_own_networks
from .refusals import explain_refusal
from .request import DockerContainer, DockerJob

REFUSAL_TIMEOUT_S = 0.2
"""Seconds in which an engine refuses to stop a container; only the container's end takes longer."""
# Each thread waits for the end of its container: with fewer threads, grace periods would add up.
_STOP_THREADS = 256
_LIVE = ("running", "restarting", "paused")


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
            for name in networks_to_create(container.kwargs.get("network") for container in containers):
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

    def _create(self, container: DockerContainer) -> None:
        kwargs: dict[str, Any] = {
            **container.kwargs,
            "labels": {**(container.kwargs.get("labels") or {}), **self._added_labels},
        }
        try:
            with self._engine.translate_errors():
                made = self._create_of(container.image, container.command, kwargs)
        except SchedulerError as error:
            raise self._refused(container, error) from error
        with self._lock:
            self._created[container.where] = str(made.id)

    def _create_of(self, image: str, command: list[str], kwargs: dict[str, Any]) -> Any:
        import docker.errors

        create = self._engine.client().containers.create
        try:
            return create(image, command, **kwargs)
        except docker.errors.ImageNotFound:
            if is_short_name(image):
                with suppress(docker.errors.ImageNotFound):
                    return create(LOCAL_REGISTRY + image, command, **kwargs)
            raise

    def _start(self, container: DockerContainer) -> None:
        container_id = self._created[container.where]
        try:
            try:
                self._ask_to_start(container_id)
            except SchedulerError as error:
                if not is_network_error(error):
                    raise
                # Someone tidied up between its making and now, or makes it as well.
                for name in networks_to_create([container.kwargs.get("network")]):
                    ensure_network(self._engine, name)
                self._ask_to_start(container_id)
        except SchedulerError as error:
            raise self._refused(container, error) from error

    def _ask_to_start(self, container_id: str) -> None:
        with self._engine.translate_errors():
            self._engine.client().api.start(container_id)

    def _refused(self, container: DockerContainer, error: SchedulerError) -> SchedulerError:
        words = explain_refusal(str(error), container)
        return type(error)(f"{self._job.app_id} was not launched: {container.where}: {words}")

    def _remove_all(self) -> list[str]:
        """Remove all containers of the app, with their anonymous volumes; return the ids of what could not be."""
        left: list[str] = []

        def remove(container_id: str) -> None:
            try:
                with self._engine.translate_errors():
                    self._engine.client().api.remove_container(container_id, v=True, force=True)
            except SchedulerError as error:
                logger.warning("%s of %s is left behind: %s", container_id, self._job.app_id, error)
                left.append(container_id[:12])

        try:
            # Asked for anew: the answer to a creation may have been lost.
            created = [container["Id"] for container in find_containers(self._engine, self._job.app_id)]
        except SchedulerError:
            created = list(self._created.values())
        parallel_map(remove, created)
        return left


class AppCanceller:
    """Cancels and deletes apps, all replicas at once.

    Args:
        engine: the engine.
        grace_seconds: how long a replica has between SIGTERM and SIGKILL, in seconds.
    """

    def __init__(self, engine: Engine, grace_seconds: float) -> None:
        self._engine = engine
        self._grace = max(1, round(grace_seconds))
        # Until when each app that was asked to end has its grace period (`time.monotonic`).
        self._asked: dict[str, float] = {}
        self._stops: set[Future[None]] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Wait until the engine has answered all requests to stop.

        Engines 23.0 to 24.0.2 kill a container if the request to stop it is dropped (moby issue 45731).
        """
        wait(self._stops)

    def cancel(self, app_id: str) -> None:
        """Ask for the end of every replica, and wait for refusals only; `close` waits for the answers.

        Replicas that never started are removed, so that they never do.

        Raises:
            SchedulerError: some could not be asked; the message says which and why.
        """
        containers = find_containers(self._engine, app_id)
        live = [container for container in containers if container.get("State") in _LIVE]
        if live and self._is_asked(app_id):
            return  # another SIGTERM would make many a program give up its own end
        waiting = [container for container in containers if container.get("State") == "created"]
        failed = [*self._begin_stops(app_id, live), *parallel_map(self._remove, waiting)]
        if failed:
            self._forget(app_id)
            raise SchedulerError(f"{app_id} was not cancelled in all replicas: {some_of(map(str, failed))}")

    def delete(self, app_id: str) -> None:
        """End the app within the grace, then remove its containers, their anonymous volumes, and its own networks.

        Raises:
            SchedulerError: something could not be removed; the message says what and why.
        """
        containers = find_containers(self._engine, app_id)
        live = [container for container in containers if container.get("State") in _LIVE]
        # What cannot be stopped is removed by force.
        for error in parallel_map(self._stop, live, most=_STOP_THREADS):
            logger.warning("%s: %s", app_id, error)
        failed = parallel_map(self._remove, containers)
        if failed:
            raise SchedulerError(f"{app_id} was not deleted in all replicas: {some_of(map(str, failed))}")
        remove_own_networks(self._engine, app_id)

    def _is_asked(self, app_id: str) -> bool:
        """Return whether the app was asked to end less than a grace period ago, and note that it is now."""
        now = time.monotonic()
        with self._lock:
            is_asked = self._asked.get(app_id, now) > now
            if not is_asked:
                self._asked[app_id] = now + self._grace
            return is_asked

    def _forget(self, app_id: str) -> None:
        with self._lock:
            self._asked.pop(app_id, None)

    def _begin_stops(self, app_id: str, containers: list[ContainerSummary]) -> list[BaseException]:
        """Stop containers in threads; return the refusals that come soon, and log later ones."""
        if not containers:
            return []
        pool = ThreadPoolExecutor(min(_STOP_THREADS, len(containers)), thread_name_prefix="docker-stop")
        stops = [pool.submit(self._stop, container) for container in containers]
        pool.shutdown(wait=False)
        self._stops = {stop for stop in self._stops if not stop.done()}.union(stops)
        answered, pending = wait(stops, REFUSAL_TIMEOUT_S)

        def check(stop: Future[None]) -> None:
            if error := stop.exception():
                self._forget(app_id)
                logger.warning("%s was not cancelled in all replicas: %s", app_id, error)

        for stop in pending:
            stop.add_done_callback(check)
        return [error for stop in answered if (error := stop.exception())]

    def _stop(self, container: ContainerSummary) -> None:
        with self._about(container):
            self._engine.client().api.stop(container["Id"], timeout=self._grace)

    def _remove(self, container: ContainerSummary) -> None:
        with self._about(container):
            self._engine.client().api.remove_container(container["Id"], v=True, force=True)

    @contextmanager
    def _about(self, container: ContainerSummary) -> Iterator[None]:
        """Within this, errors name the replica; one that is gone, or is being removed by someone else, is none."""
        try:
            with self._engine.translate_errors(container["Id"]):
                yield
        except JobNotFoundError:
            return
        except SchedulerError as error:
            if "already in progress" not in str(error):
                raise type(error)(f"{role_name(container)}/{replica_number(container)}: {error}") from error
