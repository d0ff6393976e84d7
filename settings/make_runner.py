"""Make a Runner from the settings, for the dashboard and for the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from .config import Settings


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
        contexts=settings.contexts(),
        spool_limits=settings.spool_limits(),
        most_replicas=settings.launch.most_replicas,
    )
