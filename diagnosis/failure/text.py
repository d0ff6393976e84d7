"""The sentences about failures of torchrun's ranks, made from data only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...backends.shared.exit_reasons import format_exit, signal_name
from ..ranks import name_ranks
from .torchrun import Cause, RankEnd, TorchrunEnd

_MAX_CAUSES, _MAX_ATTEMPTS = 3, 3


def describe_torchruns(ends: Sequence[TorchrunEnd], error: str = "") -> list[str]:
    """Describe the end of a job's ranks: the cause, its consequences, and earlier attempts; a sentence each.

    Args:
        ends: the end of each torchrun.
        error: the error in the job's log, for a single failed rank without one of its own.
    """

    def found(cause: Cause) -> list[RankEnd]:
        return [end for torchrun in ends for end in torchrun.ends(cause)]

    failed, lost, timed_out = found(Cause.OWN), found(Cause.LOST_PEER), found(Cause.TIMEOUT)
    has_victims = bool(lost or timed_out) and not failed
    early = [rank for torchrun in ends for rank in torchrun.exited_early] if has_victims else []
    signals = sorted({torchrun.signal for torchrun in ends if torchrun.signal})
    sentences = []
    if len(failed) == 1:
        sentences.append(f"{_names(failed)} failed: {_end(failed[0], error)}")
    elif failed:
        causes = "; ".join(f"{_names([end])}: {_end(end)}" for end in failed[:_MAX_CAUSES])
        sentences.append(f"{_names(failed)} failed independently: {causes}")
    elif early:
        sentences.append(f"{name_ranks(early)} exited before the others, with exit code 0")
    elif timed_out:
        sentences.append(f"a collective timed out on {_names(timed_out)}: {_end(timed_out[0])}")
    elif signals:
        names = ", ".join(signal_name(-number) for number in signals)
        sentences.append(f"torchrun received {names} and stopped its ranks")
    elif lost:
        sentences.append(f"{_names(lost)} lost the connection to another rank, and no rank reported another error")
    causes = len(failed) + len(early)
    follows = []
    if lost and causes:
        follows.append(f"{_names(lost)} then lost the connection" + (" to it" if causes == 1 else ""))
    if timed_out and causes:
        follows.append(f"a collective timed out on {_names(timed_out)}")
    if stopped := found(Cause.STOPPED):
        follows.append(f"torchrun stopped {_names(stopped)}")
    folders = [f"torchrun left no report; its ranks' errors are in {end.folder}" for end in ends if end.folder]
    return [*sentences, *(["; ".join(follows)] if follows else []), *_attempts(ends), *folders]


def _attempts(ends: Sequence[TorchrunEnd]) -> Iterator[str]:
    """Yield the ends of the attempts before the last one."""
    failed = [
        (f"attempt {number} of {len(torchrun.earlier) + 1} failed", end)
        for torchrun in ends
        for number, end in enumerate(torchrun.earlier, 1)
        if end is not None
    ]
    for number, (attempt, end) in enumerate(failed[:_MAX_ATTEMPTS]):
        who = f"local rank {end.local_rank}" if end.rank is None else name_ranks([end.rank])
        yield f"{'' if number else 'torchrun restarted its ranks; '}{attempt}: {who}, {_end(end)}"


def _names(ends: Sequence[RankEnd]) -> str:
    return name_ranks(end.rank for end in ends if end.rank is not None)


def _end(end: RankEnd, error: str = "") -> str:
    """Return how a rank ended, and its error."""
    # A signal explains itself.
    texts = [format_exit(end.exit_code) if end.exit_code else "", end.error or (error if end.exit_code > 0 else "")]
    return ", ".join(filter(None, texts))
