"""Ends apps and removes what is kept of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...specs import JobNotFoundError, SchedulerError
from ..docker_engine.client import Engine
from ..shared.exit_reasons import some_of
from ..shared.parallel import parallel_map
from .containers import Summary, find_containers, replica_number, role_name
from .network import remove_own_networks

logger = logging.getLogger(__name__)

# The engine has taken a request to stop within this; only the container's end takes longer (s).
_TAKEN_WITHIN = 0.2
# Each waits for its replica's end, so that few at a time would add up graces.
_STOPPED_AT_ONCE = 256
_LIVE = ("running", "restarting", "paused")


class Ending:
    """Cancels and deletes apps, all replicas at once.

    Args:
        engine: the engine.
        grace_seconds: how long a replica has between SIGTERM and SIGKILL, in seconds.
    """

    def __init__(self, engine: Engine, grace_seconds: float) -> None:
        self._engine = engine
        self._grace = max(1, round(grace_seconds))
        self._asked: dict[str, float] = {}
        self._lock = threading.Lock()

    def cancel(self, app_id: str) -> None:
        """Ask for the end of every replica and do not wait for it; the engine sees to it, whatever becomes of us.

        Replicas that never started are removed, so that they never do.

        Raises:
            SchedulerError: some could not be asked; the message says which and why.
        """
        containers = find_containers(self._engine, app_id)
        live = [one for one in containers if one.get("State") in _LIVE]
        if live and self._is_asked(app_id):
            return  # another SIGTERM would make many a program give up its own end
        waiting = [one for one in containers if one.get("State") == "created"]
        failed = [*parallel_map(self._ask_to_stop, live), *parallel_map(self._remove, waiting)]
        if failed:
            with self._lock:
                self._asked.pop(app_id, None)
            raise SchedulerError(f"{app_id} was not cancelled in all replicas: {some_of(map(str, failed))}")

    def delete(self, app_id: str) -> None:
        """End the app within the grace, then remove its containers, their anonymous volumes, and its own networks.

        Raises:
            SchedulerError: something could not be removed; the message says what and why.
        """
        containers = find_containers(self._engine, app_id)
        live = [one for one in containers if one.get("State") in _LIVE]
        # What cannot be stopped is removed by force.
        for error in parallel_map(self._stop, live, most=_STOPPED_AT_ONCE):
            logger.warning("%s: %s", app_id, error)
        failed = parallel_map(self._remove, containers)
        if failed:
            raise SchedulerError(f"{app_id} was not deleted in all replicas: {some_of(map(str, failed))}")
        remove_own_networks(self._engine, app_id)

    def _is_asked(self, app_id: str) -> bool:
        """Tell whether the app was asked to end within the grace, and note that it is."""
        now = time.monotonic()
        with self._lock:
            self._asked = {one: until for one, until in self._asked.items() if until > now}
            return self._asked.setdefault(app_id, now + self._grace) != now + self._grace

    def _ask_to_stop(self, one: Summary) -> None:
        """Send the request to stop a container; the engine goes on with it when nobody waits for the answer."""
        import requests

        with self._about(one):
            api: Any = self._engine.client().api
            try:
                response = api._post(
                    api._url("/containers/{0}/stop", one["Id"]),
                    params={"t": self._grace},
                    timeout=(None, _TAKEN_WITHIN),
                )
            except requests.ReadTimeout:
                return
            api._raise_for_status(response)

    def _stop(self, one: Summary) -> None:
        with self._about(one):
            self._engine.client().api.stop(one["Id"], timeout=self._grace)

    def _remove(self, one: Summary) -> None:
        with self._about(one):
            self._engine.client().api.remove_container(one["Id"], v=True, force=True)

    @contextmanager
    def _about(self, one: Summary) -> Iterator[None]:
        """Within this, errors name the replica; one that is gone, or is being removed by someone else, is none."""
        try:
            with self._engine.in_words(one["Id"]):
                yield
        except JobNotFoundError:
            return
        except SchedulerError as error:
            if "already in progress" not in str(error):
                raise type(error)(f"{role_name(one)}/{replica_number(one)}: {error}") from error
