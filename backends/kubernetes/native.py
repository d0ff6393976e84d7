"""What the server itself says of a job and its pods, as YAML, secret values masked."""

from __future__ import annotations

from ..readable_yaml import readable_yaml
from .jobs import Object
from .masking import masked


def native_text(job: Object, pods: list[Object]) -> str:
    """Return a job and its pods as one YAML document each; less what only the server's own bookkeeping needs."""
    return "---\n".join(readable_yaml(masked(_less(one))) for one in (job, *pods))


def _less(found: Object) -> Object:
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    return {**found, "metadata": metadata}
