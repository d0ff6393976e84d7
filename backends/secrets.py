"""Values that look secret are masked on screen and in what is copied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

SECRET_NAMES = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*KEY*")
"""Patterns of names whose values are masked, in any case."""

MASK = "********"

# A value ends before the next pair: quotes keep it together, and a comma that no name follows belongs to it.
_PIECE = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^,;\s])"""
_PAIR = re.compile(
    rf"(?P<name>[A-Za-z_][\w.-]*)(?P<sign>[=:])(?P<value>{_PIECE}+(?:[,;](?![\w.-]*[=:])[^,;\s]*)*)", re.DOTALL
)
_chosen: tuple[str, ...] = SECRET_NAMES


def choose_patterns(patterns: Sequence[str]) -> None:
    """Take these patterns, instead of `SECRET_NAMES`, wherever none are given; the settings' are for the process."""
    global _chosen
    _chosen = tuple(patterns)


def is_secret(name: str, patterns: Sequence[str] | None = None) -> bool:
    """Tell whether a name, of a variable or a parameter, looks as if its value were secret.

    Args:
        name: the name.
        patterns: shell patterns, matched in any case; the chosen ones if None.
    """
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in (_chosen if patterns is None else patterns))


def mask_env(env: Mapping[str, str], patterns: Sequence[str] | None = None) -> dict[str, str]:
    """Return environment variables with secret values masked; an empty value says nothing and stays."""
    return {name: MASK if value and is_secret(name, patterns) else value for name, value in env.items()}


def mask_text(name: str, text: str) -> str:
    """Return the text of a parameter or option with what looks secret masked.

    Args:
        name: its name; all of the text is masked where that looks secret.
        text: its text; of pairs such as ``A=1,HF_TOKEN=x`` the values whose names look secret are masked.
    """
    if text and is_secret(name):
        return MASK

    def masked(pair: re.Match[str]) -> str:
        return f"{pair['name']}{pair['sign']}{MASK}" if is_secret(pair["name"]) else pair[0]

    return _PAIR.sub(masked, text)


def mask_words(words: str, name: str, text: str) -> str | None:
    """Return words about the text of a parameter or option with what looks secret in it masked.

    Args:
        words: they may quote the text, or a part of it.
        name: the parameter's name.
        text: its text, which is masked as `mask_text` does.

    Returns:
        the words; None where a part of what is secret is left in them.
    """
    secrets = [text] if is_secret(name) else [pair["value"] for pair in _PAIR.finditer(text) if is_secret(pair["name"])]
    for secret in filter(None, secrets):
        words = re.sub(rf"(?<=[`=:]){re.escape(secret)}(?![\w.-])", MASK, words)
        parts = [part for part in re.split(r"[^\w.-]+", secret) if part]
        if any(re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w.-])", words) for part in parts):
            return None
    return words
