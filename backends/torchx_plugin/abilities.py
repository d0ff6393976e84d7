"""What a plugin can do, told from what its class implements."""

from __future__ import annotations

from typing import Any

from ..responses import Capabilities, Stream


def abilities_of(theirs: Any) -> Capabilities:
    """Return the capabilities of a scheduler of TorchX's.

    What no class tells, such as whether retries are honoured, is taken to be so: a warning would be worse. A log's
    outputs are not told either: those that are refused when they are asked for are left out from then on.

    Args:
        theirs: the scheduler.
    """
    from torchx.schedulers.api import Scheduler as TheirScheduler
    from torchx.workspace import WorkspaceMixin as TheirWorkspaceMixin

    def has(*methods: str) -> bool:
        return any(getattr(type(theirs), name, None) is not getattr(TheirScheduler, name, None) for name in methods)

    has_logs = has("log_iter")
    return Capabilities(
        cancel=has("cancel", "_cancel_existing"),
        delete=has("delete", "_delete_existing"),
        log_follow=has_logs,
        log_streams=(Stream.COMBINED, Stream.STDOUT, Stream.STDERR) if has_logs else (),
        retries=True,
        resources=True,
        workspace=isinstance(theirs, TheirWorkspaceMixin),
        native=has("describe_native"),
        times=False,
        exit_codes=False,
        replica_counts=False,
        named_ids=False,
    )
