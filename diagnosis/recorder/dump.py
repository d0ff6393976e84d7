"""Reader of PyTorch's flight recorder dumps. They are untrusted: a pickle can run programs.

A dump is a pickle, ``_dump_fr_trace`` and the files that NCCL's watchdog writes, or JSON without stacks,
``_dump_fr_trace_json`` and the handler ``fr_trace_json`` of the worker server. Both have the form of torch's
``FlightRecorder.hpp``, version 2.x: ``{version, pg_config, pg_status, entries, ...}``.
"""

from __future__ import annotations

import io
import pickle
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...base.files import LARGE, read_file
from ...base.validation import decode_json
from ..frames import Frame, parse_frames

_MAX_ENTRIES = 20_000
_MAX_ITEMS = 64
_MAX_RANKS = 1 << 20
_MAX_TEXT = 400
# A dump of 2,000 collectives, the recorder's default, with stacks of 30 frames has 350,000 opcodes. A million take 2 s
# and 100 MB; the 64 million of a hostile file would take minutes and gigabytes.
_MAX_OPCODES = 1_000_000
# Maximum values in the JSON form, which has no stacks.
_MAX_VALUES = 2_000_000
_GLOO = "gloo:"
# A rank at the end of a file's name, where all writers put it: fr_3, nccl_trace_rank_3, fr.json.3.
_RANK = re.compile(r"(\d{1,7})$")


class DumpError(ValueError):
    """The bytes are not a flight recorder dump; the message says why and is safe to show."""


@dataclass(frozen=True)
class Collective:
    """One call of a rank to the communication library.

    Attributes:
        group: the name of its process group.
        description: the purpose of the group, such as ``default_pg``.
        seq: its number among the group's collectives, or among the group's sends and receives.
        op: the operation, such as ``all_reduce``.
        sizes: the shapes of its inputs.
        dtypes: the types of its inputs.
        is_p2p: whether it is a send or a receive.
        is_done: whether it has completed on this rank.
        state: the recorder's state: scheduled, started, completed.
        created_ns: time of the call, in nanoseconds since the epoch; 0 if unknown.
        frames: the calling stack, innermost first; empty in the JSON form.
    """

    group: str
    description: str
    seq: int
    op: str
    sizes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    is_p2p: bool = False
    is_done: bool = False
    state: str = ""
    created_ns: int = 0
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Dump:
    """The contents of one rank's recorder.

    Attributes:
        collectives: its latest calls, oldest first.
        members: the ranks of each process group whose members are recorded, by name.
    """

    collectives: tuple[Collective, ...]
    members: dict[str, frozenset[int]] = field(default_factory=dict)


class _Opcodes(dict[int, Any]):
    """Handlers of the allowed opcodes, which count the opcodes."""

    _left = _MAX_OPCODES

    def __getitem__(self, code: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise pickle.UnpicklingError(f"it has more than {_MAX_OPCODES:,} opcodes")
        return super().__getitem__(code)


class _PlainUnpickler(pickle._Unpickler):  # pyrefly: ignore
    """Unpickler of containers, numbers and texts that refuses every other opcode.

    It extends the unpickler written in Python, since the one in C allocates memory for any memo index a pickle names.
    """

    dispatch = {
        code: handler
        for code, handler in pickle._Unpickler.dispatch.items()
        if bytes([code])
        in (
            pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.MEMOIZE, pickle.BINPUT, pickle.LONG_BINPUT,
            pickle.BINGET, pickle.LONG_BINGET, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BININT,
            pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.BINFLOAT, pickle.BINUNICODE, pickle.SHORT_BINUNICODE,
            pickle.EMPTY_DICT, pickle.EMPTY_LIST, pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2,
            pickle.TUPLE3, pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS,
        )
    }  # fmt: skip

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        # The base class looks its handlers up here, by subscript.
        self.dispatch = _Opcodes(type(self).dispatch)  # pyrefly: ignore

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it asks for an object that it does not contain")


def read_dump(path: Path) -> Dump:
    """Read a dump from a file.

    Raises:
        DumpError: it cannot be read, is larger than 64 MB, or is no dump.
    """
    try:
        return parse_dump(read_file(path, LARGE))
    except OSError as error:
        raise DumpError(error.strerror or str(error)) from error


def rank_of_file(name: str) -> int | None:
    """Return the rank at the end of a dump's file name; None if there is no number."""
    found = _RANK.search(name)
    return int(found[1]) if found else None


def parse_dump(data: bytes) -> Dump:
    """Parse a dump, pickle or JSON.

    Raises:
        DumpError: it is not a dump.
    """
    try:
        if data[:1] not in (b"{", b"["):
            value = _PlainUnpickler(data).load()
        elif data.count(b",") > _MAX_VALUES:
            raise ValueError(f"it has more than {_MAX_VALUES:,} values")
        else:
            value = decode_json(data)
    except KeyError as error:
        # The dispatch table has no such opcode.
        raise DumpError(f"it has an opcode that dumps do not use ({error}); nothing was run") from error
    except Exception as error:  # broken bytes can raise anything in an unpickler
        raise DumpError(f"it is not a dump of the flight recorder: {str(error)[:_MAX_TEXT]}") from error
    return _dump_of(value)


def _dump_of(value: Any) -> Dump:
    if not isinstance(value, dict) or not isinstance(value.get("entries", []), (list, tuple)):
        raise DumpError("it is not a dump of the flight recorder: it has no list of entries")
    if "entries" not in value and "pg_status" not in value:
        raise DumpError("it is not a dump of the flight recorder: it has neither entries nor pg_status")
    entries = value.get("entries", [])[-_MAX_ENTRIES:]
    collectives = [collective for entry in entries if (collective := _collective_of(entry)) is not None]
    return Dump(tuple(collectives), _members_of(value.get("pg_config")))


def _collective_of(entry: Any) -> Collective | None:
    """Parse an entry; return None for a malformed one."""
    if not isinstance(entry, dict):
        return None
    group, name = entry.get("process_group"), entry.get("profiling_name")
    is_p2p = entry.get("is_p2p") is True
    seq = entry.get("p2p_seq_id" if is_p2p else "collective_seq_id")
    if not isinstance(group, (list, tuple)) or len(group) != 2 or not isinstance(name, str) or type(seq) is not int:
        return None
    state = _text(entry.get("state"))
    # gloo's entries stay scheduled; completed ones are retired.
    is_done = state == "completed" or (entry.get("retired") is True and name.startswith(_GLOO))
    created = entry.get("time_created_ns")
    return Collective(
        _text(group[0]),
        _text(group[1]),
        seq,
        _text(name).rpartition(":")[2] if name.startswith(_GLOO) else _text(name).partition(":")[2] or _text(name),
        _sizes(entry.get("input_sizes")),
        tuple(_text(kind) for kind in _items(entry.get("input_dtypes"))),
        is_p2p,
        is_done,
        state,
        created if type(created) is int else 0,
        parse_frames(entry.get("frames"), _MAX_ITEMS),
    )


def _members_of(config: Any) -> dict[str, frozenset[int]]:
    """Return the ranks of each named group; gloo has one nameless entry, for the group that was made last."""
    members = {}
    for key, group in config.items() if isinstance(config, dict) else ():
        if isinstance(group, dict):
            name, ranks = _text(group.get("name") or key), frozenset(_ranks(group.get("ranks")))
            if name and ranks:
                members[name] = ranks
    return members


def _ranks(value: Any) -> list[int]:
    """Parse ranks, written as ``[0, 1]`` in a text or a list."""
    if isinstance(value, str):
        return [int(number) for number in re.findall(r"\d{1,7}", value[: 8 * _MAX_RANKS])]
    return [item for item in _items(value) if type(item) is int]


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(size for size in _items(shape) if type(size) is int) for shape in _items(value))


def _items(value: Any) -> list[Any]:
    return list(value[:_MAX_ITEMS]) if isinstance(value, (list, tuple)) else []


def _text(value: Any) -> str:
    return str(value)[:_MAX_TEXT] if isinstance(value, (str, int)) else ""
