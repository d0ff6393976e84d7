"""What a person chose on the screen, kept for the next start: order, columns, filter, pins."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..base.files import private_folder, read_file, state_folder, write_private
from ..base.validation import decode_json

logger = logging.getLogger(__name__)

_FORMAT = 1
# Choices made within so long are written together (s).
_PAUSE = 0.5


@dataclass(frozen=True)
class UiState:
    """What is kept.

    Attributes:
        sort_column: the key of the column that orders the rows.
        sort_reversed: whether its order is reversed.
        columns: the keys of the columns shown, in order; empty for those that fit the width.
        filter: the filter as typed.
        mine: only this user's jobs are shown.
        torchx_only: only what TorchX launched is shown.
        pinned: the components that come first in the picker, as `component_key` calls them.
        backends: the schedulers that have answered; one that has not is not set up here.
    """

    sort_column: str = "age"
    sort_reversed: bool = False
    columns: tuple[str, ...] = ()
    filter: str = ""
    mine: bool = False
    torchx_only: bool = True
    pinned: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()


class UiStateFile:
    """The file that keeps a `UiState`; a damaged one is as none, one of a newer format is left alone.

    Args:
        path: the file; ``screen.json`` in the state folder if None.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or state_folder() / "screen.json"
        self._newer = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.state = self._saved = self._read()

    def change(self, **changes: Any) -> None:
        """Keep other values; they are written soon, by a thread."""
        state = replace(self.state, **changes)
        if state == self.state:
            return
        self.state = state
        if self._timer is None:
            self._timer = threading.Timer(_PAUSE, self._write)
            self._timer.daemon = True
            self._timer.start()

    def flush(self) -> None:
        """Write what is still to be written; a file system that hangs is not waited for."""
        if self._timer is not None:
            self._timer.cancel()
        if self._saved != self.state:
            writer = threading.Thread(target=self._write, name="write-ui-state", daemon=True)
            writer.start()
            writer.join(_PAUSE)

    def _read(self) -> UiState:
        try:
            data = decode_json(read_file(self._path))
            self._newer = data["format"] > _FORMAT
            return _decoded(data)
        except FileNotFoundError:
            return UiState()
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s cannot be read: %s", self._path, error)
            return UiState()

    def _write(self) -> None:
        # Before the state is read: a change from now on starts another timer.
        self._timer = None
        if self._newer:
            return
        with self._lock:
            state = self.state
            try:
                private_folder(self._path.parent)
                write_private(self._path, json.dumps({"format": _FORMAT, **asdict(state)}, indent=1).encode())
                self._saved = state
            except OSError as error:
                logger.warning("%s cannot be written: %s", self._path, error)


def _decoded(data: dict[str, Any]) -> UiState:
    """Take the values that are of the right kind."""
    default, found = UiState(), {}
    for field in fields(UiState):
        value = data.get(field.name)
        if isinstance(getattr(default, field.name), tuple) and isinstance(value, list):
            found[field.name] = tuple(item for item in value if isinstance(item, str))
        elif type(value) is type(getattr(default, field.name)):
            found[field.name] = value
    return UiState(**found)
