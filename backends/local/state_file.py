"""The content of state.json, which a supervisor writes, checked as it is read: a damaged file costs its own row."""

from __future__ import annotations

from typing import Any

from ...specs import AppState
from ...specs.foreign import (
    Check,
    decode_json,
    field_fault,
    is_count,
    is_integer,
    is_list_of,
    is_name,
    is_object,
    is_optional,
    is_path,
    is_text,
    is_time,
)

TORCHX_FOLDER = "torchx_folder"
"""In the state of a job that TorchX launched: the folder of its logs, which is TorchX's; empty if not known."""


def _is_folder_name(value: Any) -> bool:
    return is_name(value) and "/" not in value and value not in (".", "..")


def _is_state(value: Any) -> bool:
    return isinstance(value, str) and value in AppState.__members__


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_state(value[0]) and is_time(value[1])


def _is_start_error(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    number, file, words = value
    return (number is None or is_integer(number)) and (file is None or is_path(file)) and is_text(words)


def _is_app(value: Any) -> bool:
    return is_object(value) and is_list_of(is_object)(value.get("roles", []))


def _is_cancel(value: Any) -> bool:
    return is_object(value) and not field_fault(value, {}, {"by": is_text, "at": is_time})


_REQUIRED: dict[str, Check] = {
    "format": is_count,
    "state": _is_state,
    **dict.fromkeys(("host", "boot_id", "pid_started", "job_id", "name", "user"), is_text),
    **dict.fromkeys(("heartbeat", "submitted_at"), is_time),
    "pid": is_count,
    "timeline": is_list_of(_is_change),
    "app": _is_app,
    "replicas": is_list_of(is_object),
}
_OPTIONAL: dict[str, Check] = {
    **dict.fromkeys(("started_at", "finished_at"), is_optional(is_time)),
    **dict.fromkeys(("waits_for", "notes"), is_list_of(is_text)),
    **dict.fromkeys(("session", "reason", "app_id"), is_text),
    **dict.fromkeys(("log_dir", TORCHX_FOLDER), is_path),
    "cancel": is_optional(_is_cancel),
    "max_running": is_count,
    "cfg": is_object,
}
_REPLICA_REQUIRED: dict[str, Check] = {
    "role": _is_folder_name,
    "id": is_count,
    "pid": is_optional(is_count),
    "pid_started": is_optional(is_text),
    "exit_code": is_optional(is_integer),
}
_REPLICA_OPTIONAL: dict[str, Check] = {
    **dict.fromkeys(("started_at", "finished_at"), is_optional(is_time)),
    **dict.fromkeys(("error_file", "cwd"), is_optional(is_path)),
    "command": is_path,
    "not_started": is_optional(_is_start_error),
}


def read_document(text: bytes) -> dict[str, Any]:
    """Return the content of a state file.

    Raises:
        ValueError: it is not what a supervisor writes; the message names the first field at fault.
    """
    document = decode_json(text)
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")
    fault = field_fault(document, _REQUIRED, _OPTIONAL)
    for number, entry in enumerate([] if fault else document["replicas"]):
        if wrong := field_fault(entry, _REPLICA_REQUIRED, _REPLICA_OPTIONAL):
            fault = f"replicas[{number}].{wrong}"
            break
    if fault:
        raise ValueError(fault)
    return document
