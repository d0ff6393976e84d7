"""The fields of state.json, which a supervisor writes and every reader checks."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from msgspec import Meta, ValidationError

from ...base.typed_data import convert
from ...base.validation import MAX_EPOCH_S, decode_json, is_name
from ...specs.status import AppState

Count = Annotated[int, Meta(ge=0, lt=2**31)]
Integer = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Time = Annotated[float, Meta(ge=0, lt=MAX_EPOCH_S)]
PathText = Annotated[str, Meta(pattern=r"\A[^\0]*\Z")]
StateName = Annotated[str, Meta(pattern=rf"\A({'|'.join(AppState.__members__)})\Z")]
FolderName = Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[^/]+\Z")]


class Cancel(TypedDict, total=False):
    """Who asked for the end of an app, and when."""

    by: str
    at: Time


class App(TypedDict, total=False):
    """An AppDef, as far as rows are made of it without parsing it."""

    roles: list[dict[str, Any]]


class _ReplicaKeys(TypedDict):
    role: FolderName
    id: Count
    pid: Count | None
    pid_started: str | None
    exit_code: Integer | None


class Replica(_ReplicaKeys, total=False):
    """One replica."""

    started_at: Time | None
    finished_at: Time | None
    error_file: PathText | None
    cwd: PathText | None
    command: PathText
    not_started: tuple[Integer | None, PathText | None, str] | None


class _StateKeys(TypedDict):
    format: Count
    state: StateName
    host: str
    boot_id: str
    pid: Count
    pid_started: str
    job_id: str
    name: str
    user: str
    heartbeat: Time
    submitted_at: Time
    timeline: list[tuple[StateName, Time]]
    app: App
    replicas: list[Replica]


class State(_StateKeys, total=False):
    """The whole file."""

    started_at: Time | None
    finished_at: Time | None
    waits_for: list[str]
    notes: list[str]
    not_ended: list[str]
    session: str
    reason: str
    app_id: str
    log_dir: PathText
    cancel: Cancel | None
    max_running: Count
    cfg: dict[str, Any]


def read_document(text: bytes) -> dict[str, Any]:
    """Return the content of a state file.

    Raises:
        ValueError: it is not what a supervisor writes; the message names the first field at fault.
    """
    document = decode_json(text)
    convert(document, State)
    for number, replica in enumerate(document["replicas"]):
        if not is_name(replica["role"]):
            raise ValidationError(f"Not printable: `$.replicas[{number}].role`")
    return document
