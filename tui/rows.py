"""One row of the job table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

from ..specs.handles import split_context
from ..specs.status import AppState, is_terminal

# Letters of the names of arguments where they do not fit.
_SHORT_NAMES = (6, 4, 2)
# What people call a scheduler in a column of six cells.
BACKEND_WORDS = {"local_cwd": "local", "local_docker": "docker", "kubernetes": "k8s"}


def backend_word(scheduler: str, *, long: bool = False) -> str:
    """Return a scheduler's word on screen, such as ``local`` for ``local_cwd``; of one in a context, the context."""
    scheduler, context = split_context(scheduler)
    if context:
        return context
    if long and scheduler == "kubernetes":
        return scheduler
    return BACKEND_WORDS.get(scheduler, scheduler)


class RowProgress(NamedTuple):
    """How far a running job is.

    Attributes:
        step: its step; None where that is not known.
        fraction: the part that is done, from 0 to 1; None where the end is not known.
        seconds_left: how long until its end; None where that is not known.
        metric: its main metric, empty where there is none.
        value: that metric's last value as it was printed.
        stalled: says that and why it is taken to be stalled; empty where it is not.
        stalled_seconds: how long it has made no step then.
    """

    step: float | None
    fraction: float | None
    seconds_left: float | None
    metric: str
    value: str
    stalled: str = ""
    stalled_seconds: float = 0.0


@dataclass(frozen=True)
class JobRow:
    """What the table knows of one job.

    Attributes:
        handle: the app handle, the row's key.
        scheduler: the scheduler's name.
        app_id: the app's id.
        state: the state as the backend says it; for history, the last one seen.
        running: replicas that run now; succeeded ones once the job is final.
        wanted: replicas asked for.
        component: the component that made it, if the journal knows.
        arguments: that component's arguments, as typed.
        why: the reason of the state in words, cause first; empty where there is nothing to say.
        history: the backend no longer knows the job, the journal does.
        foreign: TorchX did not launch it.
        group: what the jobs of one sweep share.
        swept: what distinguishes it from the other jobs of its sweep, by name.
        called: the app's name, where its id does not tell it.
        limit_at: when it reaches its time limit, in seconds since the epoch; None where that is not known.
        after: the handles of the jobs that it was queued behind.
        kind: what kind of job it is, where its scheduler has several.
        link: which link of its chain it is, such as ``2/5``; empty for a job that is in none.
    """

    handle: str
    scheduler: str
    app_id: str
    state: AppState
    running: int = 0
    wanted: int = 0
    submitted_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    component: str = ""
    arguments: str = ""
    why: str = ""
    user: str = ""
    image: str = ""
    notes: tuple[str, ...] = ()
    history: bool = False
    foreign: bool = False
    group: str = ""
    swept: tuple[tuple[str, str], ...] = ()
    called: str = ""
    limit_at: float | None = None
    after: tuple[str, ...] = ()
    link: str = ""
    kind: str = ""

    @cached_property
    def name(self) -> str:
        """The app id as it may be drawn, less its namespace: a backend could hold anything.

        One that is a number has the app's name in front.
        """
        # Not on the way to the first paint.
        from ..logs.text.sanitize import plain

        shown = plain(self.app_id.rpartition(":")[2] or self.app_id)
        return f"{self.called} {shown}" if self.called else shown

    @cached_property
    def named_arguments(self) -> dict[str, str]:
        """Its arguments by name: `--lr 0.1`, `--lr=0.1`, `optim.lr=0.1`; others by their position, such as `#1`."""
        import shlex

        try:
            words = shlex.split(self.arguments)
        except ValueError:
            words = self.arguments.split()
        found: dict[str, str] = {}
        name, positions = "", count(1)
        for word in words:
            is_value = not word.startswith("-") or word[1:2].isdigit() or word[1:2] == "."
            if is_value and name:
                found[name], name = word, ""
            elif "=" in word:
                key, _, value = word.partition("=")
                found[key.lstrip("-")], name = value, ""
            elif is_value:
                found[f"#{next(positions)}"] = word
            else:
                name = word.lstrip("-")
                found[name] = "yes"
        return {**found, **dict(self.swept)}

    @cached_property
    def varied(self) -> str:
        """What distinguishes it: its values in its sweep, else the arguments that are not at their defaults."""
        return self._varied()

    def fit_varied(self, width: int) -> str:
        """Return `varied` with names so short that it has a width, if that is possible; of a sweep, without names."""
        shorter = (self._varied(letters) for letters in _SHORT_NAMES)
        texts = (self.varied, *shorter)
        return next((text for text in texts if len(text) <= width), self._varied(0) if self.swept else self.varied)

    def _varied(self, letters: int | None = None) -> str:
        pairs = self.swept or self.named_arguments.items()
        named = [(name[:letters] if not name.startswith("#") else "", value) for name, value in pairs]
        return " ".join(f"{name}={value}" if name else value for name, value in named)

    @cached_property
    def searched(self) -> str:
        """What a word of the filter is looked for in, in lower case."""
        from .format import state_word

        words = (state_word(self.state), self.name, self.scheduler, backend_word(self.scheduler))
        launch = (backend_word(self.scheduler, long=True), self.component, self.arguments)
        return " ".join((*words, *launch, self.user, self.image, self.why, self.group)).lower()

    @property
    def is_final(self) -> bool:
        """Whether the job has ended; where nobody saw how, its state is UNKNOWN."""
        return is_terminal(self.state) or (self.state is AppState.UNKNOWN and self.finished_at is not None)

    def age_seconds(self, now: float | None = None) -> float | None:
        """Return how long ago the job was submitted, or None if that is not known."""
        if self.submitted_at is None:
            return None
        return max(0.0, (time.time() if now is None else now) - self.submitted_at)

    @property
    def duration_seconds(self) -> float | None:
        """How long the job ran, for a job that ended."""
        if self.finished_at is None or self.started_at is None:
            return None
        return max(0.0, self.finished_at - self.started_at)
