"""Converts arguments of builtin components to parts of a role, with errors that name the argument."""

from __future__ import annotations

from ..specs.errors import ArgumentError, MountError, UnknownResourceError
from ..specs.mounts import Mount, parse_mounts
from ..specs.resource_names import resource
from ..specs.resources import Resource


def checked_resource(cpu: int, gpu: int, memMB: int, h: str | None) -> Resource:
    """Return the named resource of a host, or one of the numbers if no name is given.

    Raises:
        ArgumentError: No named resource has the host's name.
    """
    return Resource(cpu=cpu, gpu=gpu, memMB=memMB) if h is None else named_host(h)


def named_host(h: str) -> Resource:
    """Return the named resource of a host.

    Raises:
        ArgumentError: No named resource has that name.
    """
    try:
        return resource(h=h)
    except UnknownResourceError as error:
        raise ArgumentError("h", str(error)) from error


def checked_mounts(mounts: list[str] | None) -> list[Mount]:
    """Parse the options of mounts.

    Raises:
        ArgumentError: The options are malformed.
    """
    try:
        # An item may be an option or a whole mount.
        return parse_mounts([option for item in mounts or [] for option in item.split(",")])
    except MountError as error:
        raise ArgumentError("mounts", str(error)) from error


def exactly_one(**given: str | None) -> None:
    """Check that one of several arguments is given.

    Raises:
        ArgumentError: None is, or more than one, or the one is empty.
    """
    values = [value for value in given.values() if value is not None]
    if len(values) != 1 or not values[0]:
        raise ArgumentError("", f"fill in exactly one of: {', '.join(given)}")
