"""Doing something with several jobs, and saying how it went with each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...backends.shared.parallel import parallel_map
from ...base.errors import describe_error
from ..format import count
from ..messages import ActionDone

if TYPE_CHECKING:
    from ...backends.shared.progress import Progress
    from ..rows import JobRow


def act_on_jobs(
    rows: Sequence[JobRow],
    act: Callable[[str], str | None],
    verb: str,
    after: str,
    *,
    forget: bool = False,
    progress: Progress | None = None,
    most: int = 1,
    on_done: Callable[[int], object] = lambda count: None,
) -> ActionDone:
    """Do something with each job; it may take long.

    Args:
        rows: the jobs.
        act: called with each handle; returns the handle of what came of it, None for the same.
        verb: what was done with those with which it went well, as the beginning of a sentence.
        after: the rest of that sentence, after the job's name.
        forget: whether the jobs are no more then.
        progress: of the launch that it is, if it is one.
        most: how many at a time; each after the other, in their order, if 1.
        on_done: called after each with how many are done.
    """
    came: dict[str, str] = {}
    failures: dict[str, str] = {}

    def act_on(row: JobRow) -> None:
        try:
            came[row.handle] = act(row.handle) or row.handle
        except Exception as error:
            failures[row.handle] = describe_error(error)

    parallel_map(act_on, rows, lambda count, _: on_done(count), most)
    handles = [came[row.handle] for row in rows if row.handle in came]
    results = [(row.name, failures.get(row.handle, "")) for row in rows]
    failed = len(rows) - len(handles)
    gone = tuple(handles) if forget else ()
    text = _outcome(results, verb, after)
    told = tuple(results) if failed and len(rows) > 1 else ()
    return ActionDone(text, bool(failed), tuple(handles), gone, told, progress)


def job_names(rows: Sequence[JobRow]) -> str:
    """Return the name of one job, the number of several."""
    return rows[0].name if len(rows) == 1 else count(len(rows), "job")


def _outcome(results: list[tuple[str, str]], verb: str, after: str) -> str:
    """Return in one line how an action went.

    Args:
        results: each job with why it failed, empty where it did not.
        verb: what was done with those with which it went well.
        after: the rest of that sentence.
    """
    if len(results) == 1:
        name, failure = results[0]
        return f"{name}: {failure}" if failure else f"{verb} {name} {after}".rstrip()
    failed = sum(bool(failure) for _, failure in results)
    done = f"{verb} {count(len(results) - failed, 'job')} {after}".rstrip()
    return f"{done}, {failed:,} failed" if failed else done
