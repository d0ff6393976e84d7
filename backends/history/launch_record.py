"""One launch as the journal keeps it: a JSON file, checked field by field as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ...base.validation import (
    Check,
    decode_json,
    encode_json,
    find_invalid_field,
    is_count,
    is_dict_of,
    is_name,
    is_object,
    is_optional,
    is_path,
    is_text,
    is_time,
)
from ...specs.serialize import appdef_from_dict

if TYPE_CHECKING:
    from ...specs.roles import AppDef


# What stands before an argument's name among what config gave; run options have no dots in their names.
ARGUMENT_PREFIX = "component."


FORMAT = 1


@dataclass(frozen=True)
class LaunchOrigin:
    """What a launch was made from.

    Attributes:
        component: the component's name, empty where the AppDef came from elsewhere.
        arguments: its arguments as text, by parameter; those at their defaults are left out.
        overrides: what was changed in the AppDef's roles, as text, by role and field; see `components.override_roles`.
        relaunch_of: the journal id of the launch that this one repeats.
        group: what several launches of one sweep share, empty for a launch of its own.
        config: what config gave to it, as text: ``scheduler``, run options, and arguments as ``component.NAME``.
        profile: the name of the profile in force, empty for none; None if it is not known.
    """

    component: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    relaunch_of: str = ""
    group: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None


@dataclass(frozen=True)
class LaunchRecord:
    """One launch, from the intent to the last state that was seen.

    Attributes:
        id: the record's name; ids sort by time.
        at: when the launch was asked for, in seconds since the epoch.
        scheduler: the scheduler's name, such as ``local_cwd``.
        session: the session part of the handle.
        app: the AppDef as `appdef_to_dict` gives it, before anything was added for the backend.
        cfg: the run options that were given, not those filled in by default.
        component: the component's name, empty when the AppDef came from elsewhere.
        arguments: the component's arguments as text, by parameter.
        overrides: what was changed in the AppDef's roles, as text, by role and field.
        relaunch_of: the id of the launch that this one repeats.
        group: what the launches of one sweep share.
        config: what config gave to it, see `LaunchOrigin`.
        profile: the profile in force, see `LaunchOrigin`; older records have none.
        world: what was around it, see `LaunchWorld`; empty until that was found out.
        expected_app_id: the id that the dry run had chosen, to find the job if the launcher died before it learnt it.
        app_id: the id that the scheduler gave; empty until it has.
        error: why the launch failed, empty if it did not.
        state: the name of the last AppState seen, empty if none was.
        cancelled_at: when this program was asked to cancel the job, before it asked the backend.
    """

    id: str
    at: float
    scheduler: str
    session: str
    app: dict[str, Any]
    cfg: dict[str, Any] = field(default_factory=dict)
    component: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    workspace: str = ""
    cwd: str = ""
    user: str = ""
    host: str = ""
    overrides: dict[str, dict[str, str]] = field(default_factory=dict)
    relaunch_of: str = ""
    group: str = ""
    config: dict[str, str] = field(default_factory=dict)
    profile: str | None = None
    world: dict[str, Any] = field(default_factory=dict)
    expected_app_id: str = ""
    app_id: str = ""
    error: str = ""
    state: str = ""
    state_at: float | None = None
    message: str = ""
    cancelled_at: float | None = None
    cancelled_by: str = ""
    read_only: bool = False

    @property
    def handle(self) -> str:
        """The job's app handle, or an empty text if it never got an id."""
        app_id = self.app_id or self.expected_app_id
        return f"{self.scheduler}://{self.session}/{app_id}" if app_id else ""

    def origin(self, **changes: Any) -> LaunchOrigin:
        """Return the origin of the launch, with some of it changed."""
        kept = {item.name: getattr(self, item.name) for item in fields(LaunchOrigin)}
        return LaunchOrigin(**{**kept, **changes})

    def app_def(self) -> AppDef:
        """Return the AppDef that was launched.

        Raises:
            AppDefError: the record holds none that can be read.
        """
        return appdef_from_dict(self.app)


def _is_id(value: Any) -> bool:
    return value == "" or is_name(value)


_REQUIRED: dict[str, Check] = {
    "format": is_count,
    "id": is_name,
    "at": is_time,
    "scheduler": is_name,
    "session": _is_id,
    "app": is_object,
}
_OPTIONAL: dict[str, Check] = {
    **dict.fromkeys(("cfg", "arguments", "world"), is_object),
    **dict.fromkeys(("component", "user", "host", "relaunch_of", "group"), is_text),
    **dict.fromkeys(("workspace", "cwd"), is_path),
    **dict.fromkeys(("error", "state", "message", "cancelled_by"), is_text),
    **dict.fromkeys(("expected_app_id", "app_id"), _is_id),
    **dict.fromkeys(("state_at", "cancelled_at"), is_optional(is_time)),
    "overrides": is_dict_of(is_dict_of(is_text)),
    "config": is_dict_of(is_text),
    "profile": is_optional(is_text),
}
_FIELDS = {f.name for f in fields(LaunchRecord)} - {"read_only"}


def decode_record(text: bytes, record_id: str) -> LaunchRecord:
    """Return the record that a file holds.

    Raises:
        ValueError: it is not what `encode_record` gives, or is another record's.
    """
    data = decode_json(text)
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    if fault := find_invalid_field(data, _REQUIRED, _OPTIONAL):
        raise ValueError(fault)
    if data["id"] != record_id:
        raise ValueError(f"it holds the record {data['id']!r:.60}")
    known = {key: value for key, value in data.items() if key in _FIELDS}
    return LaunchRecord(**known, read_only=data["format"] > FORMAT)


def encode_record(record: LaunchRecord) -> bytes:
    """Return the content of a record's file."""
    data = asdict(record)
    del data["read_only"]
    return encode_json({"format": FORMAT, **data}, indent=1).encode()
