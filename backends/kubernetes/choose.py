"""Which kind of job an app becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...specs.errors import InvalidRunConfigException, SchedulerError
from .kinds.batch import BATCH
from .kinds.jobset import JOBSET
from .volcano.kind import VOLCANO

if TYPE_CHECKING:
    from .job_kind import JobKind
    from .jobs import Jobs
    from .request import KubernetesOpts

AUTO = "auto"
LAUNCHED: dict[str, JobKind] = {"volcano": VOLCANO, "jobset": JOBSET, "job": BATCH}
"""The kinds that are launched, as `auto` prefers them: Volcano starts replicas together, JobSet restarts them so."""


def choose_kind(find_kinds: Callable[[], Sequence[Jobs]], options: KubernetesOpts) -> JobKind:
    """Return the kind of job of a launch.

    Args:
        find_kinds: asks the server which kinds of jobs it has.
        options: the run options.

    Raises:
        InvalidRunConfigException: there is no such kind.
    """
    if options.kind in LAUNCHED:
        return LAUNCHED[options.kind]
    if options.kind != AUTO:
        valid = ", ".join((AUTO, *LAUNCHED))
        raise InvalidRunConfigException(f"kind is {options.kind!r}. Valid: {valid}", "kind", dict(options))
    try:
        served = [jobs.kind for jobs in find_kinds()]
    except SchedulerError:
        served = []
    # TorchX's, where the server cannot be asked.
    return next((kind for kind in LAUNCHED.values() if kind in served), VOLCANO)
