"""Refuses, before anything is created, an app whose names could not be folders, or that could not be started."""

from __future__ import annotations

from collections.abc import Iterator

from ...specs import MISSING, AppDef, AppDefError
from ..responses import NameFault

# The id is the name and up to 15 characters; files are named after it with up to 25 more, and a folder or file has 255.
_MOST_BYTES = 200
_MOST_SHOWN = 40


def check_app(app: AppDef, session_name: str) -> None:
    """Refuse an app that cannot run here.

    Raises:
        AppDefError: a name cannot be that of a folder, two roles have one name, or there is nothing to run.
    """
    if session_name:
        check_name("The session's name", session_name)
    if not app.roles:
        check_name("The app's name", app.name)
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    for fault in name_faults(app):
        raise AppDefError(f"{fault.what} is {_shown(fault.name)}: {fault.words}")
    for role in app.roles:
        if not role.entrypoint or role.entrypoint == MISSING:
            raise AppDefError(f"Role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise AppDefError(f"Role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
        _check_texts(role.name, [role.entrypoint, *role.args], role.env)


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that cannot be those of folders."""
    seen: set[str] = set()
    for role, name in [("", app.name), *((role.name, role.name) for role in app.roles)]:
        if words := _fault(name):
            yield NameFault(role, name, *words)
        elif role in seen:
            reason = f"{app.name} has two roles {name}, and their logs would be one"
            yield NameFault(role, name, reason, "rename one of them")
        seen.add(role)


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot be that of a folder.

    Raises:
        AppDefError: what is wrong with it.
    """
    if words := _fault(name):
        raise AppDefError(f"{what} is {_shown(name)}: {words[0]}, so {words[1]}")


def _fault(name: str) -> tuple[str, str] | None:
    """Return why a name cannot be a folder's, and what it can be; None where it can."""
    becomes = "it becomes a folder's name"
    if not name:
        return becomes, "give one"
    if "/" in name or name in (".", ".."):
        return becomes, "it can have no slash and not be dots alone"
    if not name.isprintable():
        return becomes, "it can have no control characters"
    if len(name.encode("utf-8", "surrogateescape")) > _MOST_BYTES:
        return "it is too long for a folder's name", f"it can have up to {_MOST_BYTES} bytes"
    return None


def _shown(name: str) -> str:
    if not name:
        return "empty"
    return repr(name) if not name.isprintable() else name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"


def _check_texts(role: str, args: list[str], env: dict[str, str]) -> None:
    for text in (*args, *env, *env.values()):
        if not isinstance(text, str):
            raise AppDefError(f"Role {role}: {text!r} in its arguments or environment is no text")
        if "\0" in text:
            raise AppDefError(
                f"Role {role}: an argument or variable has a NUL character, which no program can be given"
            )
    for name in env:
        if not name or "=" in name:
            raise AppDefError(f"Role {role}: {name!r} cannot be the name of an environment variable")
