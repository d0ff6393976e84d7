"""One launch as the journal keeps it: a JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ...base.typed_data import convert
from ...base.validation import decode_json, encode_json, epoch_seconds, is_name, is_path
from ...specs.serialize import appdef_from_dict

if TYPE_CHECKING:
    from ...specs.roles import AppDef

FORMAT = 1
ARGUMENT_PREFIX = "component."
"""Prefix of a component's arguments among the values of config; names of run options have no dots."""
_NAMES = ("id", "scheduler")
_IDS = ("session", "app_id", "expected_app_id")
_PATHS = ("workspace", "cwd")
_TIMES = ("at", "state_at", "cancelled_at")


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
        in_shell: whether it was launched by a command of the shell.
        swept: what distinguishes it from the others of its sweep, as text, by name; secrets are masked.
    """

    component: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    relaunch_of: str = ""
    group: str = ""
    config: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    in_shell: bool = False
    swept: Mapping[str, str] = field(default_factory=dict)


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
        in_shell: whether it was launched by a command of the shell.
        swept: what distinguishes it from the others of its sweep, see `LaunchOrigin`.
        world: the state of the code, see `GitState`; empty until git has answered.
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
    in_shell: bool = False
    swept: dict[str, str] = field(default_factory=dict)
    world: dict[str, Any] = field(default_factory=dict)
    expected_app_id: str = ""
    app_id: str = ""
    error: str = ""
    state: str = ""
    state_at: float | None = None
    message: str = ""
    cancelled_at: float | None = None
    cancelled_by: str = ""
    format: int = FORMAT

    @property
    def read_only(self) -> bool:
        """Whether a newer version wrote the record."""
        return self.format > FORMAT

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


def decode_record(text: bytes, record_id: str) -> LaunchRecord:
    """Decode the file of a record.

    Raises:
        ValueError: the content is invalid, or another record's.
    """
    record = convert(decode_json(text), LaunchRecord)
    if record.id != record_id:
        raise ValueError(f"it holds the record {record.id!r:.60}")
    valid = {
        **{name: is_name(getattr(record, name)) for name in _NAMES},
        **{name: getattr(record, name) == "" or is_name(getattr(record, name)) for name in _IDS},
        **{name: is_path(getattr(record, name)) for name in _PATHS},
        **{name: getattr(record, name) is None or epoch_seconds(getattr(record, name)) is not None for name in _TIMES},
    }
    for name, is_valid in valid.items():
        if not is_valid:
            raise ValueError(f"{name} cannot be {getattr(record, name)!r:.40}")
    return record


def encode_record(record: LaunchRecord) -> bytes:
    """Return the content of a record's file."""
    return encode_json({"format": record.format, **asdict(record)}, indent=1).encode()
