"""Refuses, before anything is created, an app whose names could not be folders, or that could not be started."""

from __future__ import annotations

from ...specs import MISSING, AppDef, AppDefError

# The id is the name and up to 15 characters; files are named after it with up to 25 more, and a folder or file has 255.
_MOST_BYTES = 200


def check_app(app: AppDef, session_name: str) -> None:
    """Refuse an app that cannot run here.

    Raises:
        AppDefError: a name cannot be that of a folder, two roles have one name, or there is nothing to run.
    """
    check_name("The app's name", app.name)
    if session_name:
        check_name("The session's name", session_name)
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    seen: set[str] = set()
    for role in app.roles:
        check_name("The role's name", role.name)
        if role.name in seen:
            raise AppDefError(f"{app.name} has two roles {role.name}: their logs would be one; rename one of them")
        seen.add(role.name)
        if not role.entrypoint or role.entrypoint == MISSING:
            raise AppDefError(f"Role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise AppDefError(f"Role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
        _check_texts(role.name, [role.entrypoint, *role.args], role.env)


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot be that of a folder.

    Raises:
        AppDefError: what is wrong with it.
    """
    if not name:
        raise AppDefError(f"{what} is empty: it becomes a folder's name, so give one")
    if "/" in name or name in (".", ".."):
        raise AppDefError(
            f"{what} is {name}: it becomes a folder's name, so it can have no slash and not be dots alone"
        )
    if not name.isprintable():
        raise AppDefError(f"{what} is {name!r}: it becomes a folder's name, so it can have no control characters")
    if len(name.encode("utf-8", "surrogateescape")) > _MOST_BYTES:
        raise AppDefError(f"{what}, {name[:20]}…, is too long: it can have up to {_MOST_BYTES} bytes")


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
