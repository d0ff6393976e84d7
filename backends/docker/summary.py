"""An app as the list of containers tells of it, without a question more."""

from __future__ import annotations

from dataclasses import dataclass

from ...specs import AppState
from . import labels
from .containers import Summary, replica_number, role_name
from .states import ReplicaState, replica_state, state_of


@dataclass(frozen=True)
class AppSummary:
    """The containers of one app and what follows from them.

    Args:
        app_id: the app's id.
        containers: its containers, in order.
        replicas: the state of each of them.
        missing: how many replicas' containers were removed by someone else.
        state: the app's state.
    """

    app_id: str
    containers: list[Summary]
    replicas: list[ReplicaState]
    missing: int
    state: AppState

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the first container; those that tell of the app are on all of them."""
        return self.containers[0].get("Labels") or {}

    @property
    def name(self) -> str:
        """The name that the app was launched under."""
        # TorchX has no label for it; its ids are the name, - and a random text.
        return self.labels.get(labels.APP_NAME) or self.app_id.rpartition("-")[0] or self.app_id

    @property
    def submitted_at(self) -> float:
        """When it was submitted, in seconds since the epoch."""
        created = min(float(one.get("Created") or 0) for one in self.containers)
        return labels.submitted_at(self.labels) or created

    def where(self, place: int) -> str:
        """Return which replica a container is of, such as ``trainer/0``."""
        one = self.containers[place]
        return f"{role_name(one)}/{replica_number(one)}"


def summarize(app_id: str, containers: list[Summary]) -> AppSummary:
    """Return what the containers of one app tell, all of them and in order."""
    replicas = [replica_state(one) for one in containers]
    states = [one.state for one in replicas]
    wanted = int((containers[0].get("Labels") or {}).get(labels.REPLICAS, "0"))
    missing = max(0, wanted - len(containers))
    if all(state is AppState.SUBMITTED for state in states):
        missing = 0  # all are created before the first starts: those that are missing are yet to come
    if missing:
        states.append(AppState.UNKNOWN)
    return AppSummary(app_id, containers, replicas, missing, state_of(states))
