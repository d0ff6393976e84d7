"""Make a Runner from the settings, for the dashboard and for the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from .config import Settings


_MB = 1_000_000


def make_runner(settings: Settings) -> Runner:
    """Make a Runner; the caller closes it."""
    from ..backends.runner import Runner

    params = settings.scheduler_params()
    if settings.notify.has_channel:
        from .helper_request import supervisor_helpers

        params["local_cwd"]["helpers"] = lambda handle: supervisor_helpers(settings, handle)
    return Runner(
        read_only=settings.read_only,
        scheduler_params=params,
        contexts={"kubernetes": settings.kubernetes.contexts},
        spool_limits=(settings.logs.spool_megabytes_per_job * _MB, settings.logs.spool_megabytes * _MB),
        most_replicas=settings.launch.most_replicas,
    )
