"""Values that look secret are masked on screen and in what is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

SECRET_NAMES = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*KEY*")
"""Patterns of names whose values are masked, in any case."""

MASK = "********"


def is_secret(name: str, patterns: Sequence[str] = SECRET_NAMES) -> bool:
    """Tell whether a name, of a variable or a parameter, looks as if its value were secret.

    Args:
        name: the name.
        patterns: shell patterns, matched in any case.
    """
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def mask_env(env: Mapping[str, str], patterns: Sequence[str] = SECRET_NAMES) -> dict[str, str]:
    """Return environment variables with secret values masked; an empty value says nothing and stays."""
    return {name: MASK if value and is_secret(name, patterns) else value for name, value in env.items()}
