"""When a job was submitted."""

from __future__ import annotations

from ..kube.objects import KubernetesObject, dig
from ..kube.pods import seconds_of
from . import labels


def submitted_at(job: KubernetesObject) -> float:
    """Return when a job was submitted, in seconds since the epoch; 0 if that is unknown."""
    created = seconds_of(job["metadata"].get("creationTimestamp")) or 0.0
    try:
        ours = float(dig(job, "metadata", "annotations", labels.SUBMITTED_AT) or "")
    except ValueError:
        return created
    # The server's time has whole seconds; another clock may be wrong.
    return ours if abs(ours - created) < 60 else created
