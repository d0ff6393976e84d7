"""Mounts of files, volumes and devices of the host in a replica, and their text form.

The text is that of Docker's `--mount`: `type=bind,src=/host,dst=/job,readonly`. Several mounts are joined; each begins
with its `type=`, as in TorchX.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from .errors import MountError
from .run_options import parse_bool

_OPTION_KEYS = {
    "type": "type",
    "src": "src",
    "source": "src",
    "dst": "dst",
    "destination": "dst",
    "target": "dst",
    "readonly": "readonly",
    "read_only": "readonly",
    "perm": "perm",
}


class MountType(str, Enum):
    """The kinds of mount, by their word in the text form."""

    BIND = "bind"
    VOLUME = "volume"
    DEVICE = "device"


@dataclass
class BindMount:
    """A folder or file of the host.

    Args:
        src_path: The path on the host.
        dst_path: The path in the container.
        read_only: Whether the job may only read it.
    """

    src_path: str
    dst_path: str
    read_only: bool = False


@dataclass
class VolumeMount:
    """A volume that the scheduler keeps, such as a Kubernetes claim.

    Args:
        src: The volume's name.
        dst_path: The path in the container.
        read_only: Whether the job may only read it.
    """

    src: str
    dst_path: str
    read_only: bool = False


@dataclass
class DeviceMount:
    """A device of the host.

    Args:
        src_path: The device on the host, such as `/dev/fuse`.
        dst_path: The device in the container.
        permissions: What the job may do: any of `r` (read), `w` (write), `m` (make nodes).
    """

    src_path: str
    dst_path: str
    permissions: str = "rwm"


Mount = BindMount | VolumeMount | DeviceMount

_VALID_KEYS = {
    MountType.BIND: ("type", "src", "dst", "readonly"),
    MountType.VOLUME: ("type", "src", "dst", "readonly"),
    MountType.DEVICE: ("type", "src", "dst", "perm"),
}


def parse_mounts(opts: Iterable[str]) -> list[Mount]:
    """Parse the mounts of a list of options such as `["type=bind", "src=/data", "dst=/data", "readonly"]`.

    Args:
        opts: The options in order; `type=` begins each mount. `readonly` may have a value: `read_only=false`.

    Raises:
        MountError: An option is unknown, missing, or has a value that is not valid; the valid ones are listed.
    """
    groups: list[dict[str, str]] = []
    for option in opts:
        word, has_value, value = option.strip().partition("=")
        key = _OPTION_KEYS.get(word)
        if key is None:
            raise MountError(f"mount: unknown option `{word}`. Valid options: {', '.join(_OPTION_KEYS)}")
        if key == "type":
            groups.append({})
        elif not groups:
            raise MountError(f"mount: `type=` must come first, before `{option}`: use type=bind|volume|device")
        if key != "readonly" and not (has_value and value):
            raise MountError(f"mount: `{word}` wants a value: {word}=...")
        if key in groups[-1]:
            raise MountError(f"mount: `{word}` is given twice for one mount")
        groups[-1][key] = value
    return [_make_mount(group) for group in groups]


def format_mounts(mounts: Iterable[Mount]) -> str:
    """Format mounts as the text that `parse_mounts` parses after a split at commas; empty for no mounts."""
    return ",".join(option for mount in mounts for option in _format_options(mount))


def _format_options(mount: Mount) -> list[str]:
    if isinstance(mount, DeviceMount):
        given = [f"dst={mount.dst_path}", f"perm={mount.permissions}"]
        return [f"type={MountType.DEVICE.value}", f"src={mount.src_path}", *given]
    kind, source = (MountType.BIND, mount.src_path) if isinstance(mount, BindMount) else (MountType.VOLUME, mount.src)
    flags = ["readonly"] if mount.read_only else []
    return [f"type={kind.value}", f"src={source}", f"dst={mount.dst_path}", *flags]


def _make_mount(group: dict[str, str]) -> Mount:
    try:
        kind = MountType(group["type"])
    except ValueError:
        valid = ", ".join(kind.value for kind in MountType)
        raise MountError(f"mount: invalid type `{group['type']}`. Valid types: {valid}") from None
    for key in group:
        if key not in _VALID_KEYS[kind]:
            raise MountError(f"mount: a {kind.value} mount has no `{key}`. Valid: {', '.join(_VALID_KEYS[kind])}")
    needed = ("src",) if kind is MountType.DEVICE else ("src", "dst")
    for key in needed:
        if key not in group:
            example = f"type={kind.value}," + ",".join(f"{word}=..." for word in needed)
            raise MountError(f"mount: a {kind.value} mount wants `{key}=`: {example}")
    source = group["src"]
    if kind is MountType.DEVICE:
        return DeviceMount(source, group.get("dst", source), _check_permissions(group.get("perm", "rwm")))
    read_only = "readonly" in group and _parse_flag(group["readonly"])
    if kind is MountType.VOLUME:
        return VolumeMount(source, group["dst"], read_only)
    return BindMount(_expand_home(source), group["dst"], read_only)


def _parse_flag(text: str) -> bool:
    try:
        return parse_bool(text or "true")
    except ValueError:
        raise MountError(f"mount: `readonly={text}`: use true or false") from None


def _check_permissions(text: str) -> str:
    for letter in text:
        if letter not in "rwm":
            raise MountError(f"mount: `perm={text}`: `{letter}` is not valid, use letters of rwm")
    return text


def _expand_home(path: str) -> str:
    if not path.startswith("~"):
        return path
    # Path.expanduser would remove a slash at the end.
    expanded = os.path.expanduser(path)  # noqa: PTH111
    if expanded.startswith("~"):
        raise MountError(f"mount: src={path}: there is no such user, so no home folder")
    return expanded
