"""The schedulers of one program: made when they are first asked for, one for each context of theirs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..specs.handles import in_context, split_context

if TYPE_CHECKING:
    from .api import Scheduler


class SchedulerPool:
    """Makes schedulers, and keeps them; every method may be called from any thread.

    Args:
        session_name: the session part of handles.
        params: keyword arguments of scheduler factories, by scheduler name.
        contexts: the contexts in which a scheduler is asked, by its name; each is a scheduler of its own.
        schedulers: schedulers that exist already, by name; the others are made.
    """

    def __init__(
        self,
        session_name: str,
        params: Mapping[str, Mapping[str, Any]] | None = None,
        contexts: Mapping[str, Sequence[str]] | None = None,
        schedulers: Mapping[str, Scheduler[Any]] | None = None,
    ) -> None:
        self._session_name = session_name
        self._params = dict(params or {})
        self._contexts = dict(contexts or {})
        self._made: dict[str, Scheduler[Any]] = dict(schedulers or {})
        self._making: dict[str, threading.RLock] = {}
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        """Return the names of all schedulers in TorchX's order; one that has contexts stands there once for each."""
        from .registry import get_scheduler_factories

        return [
            in_context(name, context)
            for name in get_scheduler_factories()
            for context in self._contexts.get(name) or ("",)
        ]

    def watched(self) -> list[str]:
        """Return the names of the schedulers that are set up here, or that contexts were named for."""
        from .registry import is_set_up

        return [*filter(is_set_up, self.names())]

    def get(self, name: str) -> Scheduler[Any]:
        """Return a scheduler, made at the first call.

        Args:
            name: its name, with a context where another one than its own is meant.

        Raises:
            UnknownSchedulerException: there is none of that name.
        """
        from .registry import create_scheduler

        with self._lock:
            making = self._making.setdefault(name, threading.RLock())
        # One that hangs while it is made holds up no other.
        with making:
            if name not in self._made:
                registered, context = split_context(name)
                params = {**self._params.get(registered, {}), **({"context": context} if context else {})}
                made = create_scheduler(registered, self._session_name, **params)
                with self._lock:
                    self._made[name] = made
            return self._made[name]

    def resolve_context(self, name: str, cfg: Mapping[str, Any]) -> str:
        """Return the name of the scheduler of the context that run options choose.

        Args:
            name: the scheduler that was chosen.
            cfg: its run options.
        """
        context = str(cfg.get("context") or "")
        if not context:
            return name
        chosen = self.get(name)
        return in_context(name, context) if chosen.takes_contexts and context != chosen.context else name

    def made(self) -> list[tuple[str, Scheduler[Any]]]:
        """Return the schedulers that were made, with their names."""
        with self._lock:
            return list(self._made.items())

    def close(self) -> None:
        """Close all that were made."""
        with self._lock:
            made, self._made = self._made, {}
        for scheduler in made.values():
            scheduler.close()
