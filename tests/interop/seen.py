"""What our side sees of a job, whichever program launched it."""

from typing import Any

from support.waiting import CLUSTER_PATIENCE, wait_until

from torchx_tui.specs.handles import parse_app_handle
from torchx_tui.specs.status import AppState


def row(runner, handle) -> Any:
    """Return the row of a job, or None."""
    scheduler, *_ = parse_app_handle(handle)
    return next((one for one in runner.list(scheduler) if one.app_handle == handle), None)


def reached(runner, handle, *states, running=None):
    """Wait until a job is in one of these states, with this number of running replicas; return its description."""

    def described():
        found = runner.job(handle).describe()
        if found is None or found.state not in states:
            return None
        count = sum(one.state is AppState.RUNNING for role in found.roles_statuses for one in role.replicas)
        return found if running in (None, count) else None

    return wait_until(described, f"{handle}: {states}", CLUSTER_PATIENCE)
