"""How often a backend is asked: often while something happens and somebody looks, seldom else."""

from __future__ import annotations

# A backend of which nothing changes is asked after a part of the time that nothing has changed.
_QUIET_PART = 20.0
# Without a key for so long nobody looks (s).
UNWATCHED_SECONDS = 300.0
# While nobody looks, running jobs are asked after at most this often (s): their ends are still told of.
_UNWATCHED_FACTOR = 5.0
# A table of finished jobs changes only when somebody launches elsewhere.
_IDLE_FACTOR = 3.0


def tick_seconds(*, active: bool, quiet: float, unwatched: float, fastest: float, slowest: float) -> float:
    """Return the seconds to the next question, without jitter.

    Args:
        active: some job has not ended.
        quiet: seconds since the backend's answer last differed.
        unwatched: seconds since the last key.
        fastest: seconds between questions while a job is active and somebody looks.
        slowest: the longest pause.
    """
    slowest = max(fastest, slowest)
    if active and unwatched < UNWATCHED_SECONDS:
        return fastest
    least = fastest * (_UNWATCHED_FACTOR if active else _IDLE_FACTOR)
    most = slowest if unwatched >= UNWATCHED_SECONDS or not active else least
    return min(slowest, max(least, min(most, quiet / _QUIET_PART)))
