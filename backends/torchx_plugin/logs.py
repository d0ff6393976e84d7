"""Which replica and which output of a log is asked for, and how a plugin is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from ...specs import JobNotFoundError, LogUnreadableError, SchedulerError
from ..responses import DescribeAppResponse, Stream
from .calls import PluginCalls

Open = Callable[[], Iterable[str]]


def check_replica(
    described: DescribeAppResponse | None,
    scheduler: str,
    app_id: str,
    role_name: str,
    k: int,
    stream: Stream | None,
    known: Sequence[Stream],
) -> Stream:
    """Return the output that is meant, having checked that there is such a replica.

    Args:
        described: the app; without roles, the plugin decides about them.
        scheduler: the scheduler's name.
        app_id: the app's id.
        role_name: the role.
        k: the replica's number in the role.
        stream: the output; combined where None.
        known: the outputs that the scheduler is known to have.

    Raises:
        JobNotFoundError: there is no such app.
        LogUnreadableError: the scheduler has no logs.
        ValueError: there is no such role, replica or output.
    """
    if not known:
        raise LogUnreadableError(f"{scheduler} has no logs to read")
    if stream is not None and stream not in known:
        raise ValueError(f"{scheduler} has no output {stream!s}: it has {', '.join(one.value for one in known)}")
    if described is None:
        raise JobNotFoundError(app_id, scheduler)
    roles = {role.name: role for role in described.roles}
    if roles and role_name not in roles:
        raise ValueError(f"{app_id} has no role {role_name}: it has {', '.join(roles)}")
    if roles and not 0 <= k < roles[role_name].num_replicas:
        raise ValueError(f"{role_name} has no replica {k}: it has 0 to {roles[role_name].num_replicas - 1}")
    return Stream.COMBINED if stream is None else Stream(stream)


def outputs(
    calls: PluginCalls, theirs: Any, replica: tuple[str, str, int], wanted: Mapping[str, Any], stream: Stream
) -> tuple[list[Open], str]:
    """Return what opens each output that together are the one that is asked for, and why the plugin refused it.

    A plugin that does not merge its outputs refuses `COMBINED` at the call: then both are read.

    Args:
        calls: the way into the plugin.
        theirs: the plugin's scheduler.
        replica: app id, role and number.
        wanted: further arguments of its `log_iter`.
        stream: which output.

    Raises:
        LogUnreadableError: it has no logs.
        SchedulerError: it could not be asked.
    """
    from .to_torchx import ToTorchX

    turned = ToTorchX()

    def ask(one: Stream) -> Iterable[str]:
        return theirs.log_iter(*replica, **wanted, streams=turned.stream(one))

    try:
        first = calls.call("give a log", partial(ask, stream))
    except SchedulerError as error:
        if isinstance(error.__cause__, NotImplementedError):
            raise LogUnreadableError(str(error)) from error
        if not isinstance(error.__cause__, ValueError):
            raise
        if stream is not Stream.COMBINED:
            return [], str(error)
    else:
        return [lambda: first], ""
    both = [partial(ask, one) for one in (Stream.STDOUT, Stream.STDERR)]
    if wanted["should_tail"]:
        return list(both), ""
    return [lambda: chain.from_iterable(begin() for begin in both)], ""
