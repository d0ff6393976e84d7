"""The one masker: what looks secret, in names and in texts, is replaced by `MASK` wherever it is shown or copied.

Nothing is masked in what a scheduler is sent. What is recognised, and docs/launching.md says the same:

- the value of a name that looks secret: a variable, a parameter, ``NAME=value``, ``--name=value``, ``--name value``,
  ``"name": "value"``;
- the password of a URL, ``scheme://user:password@host``, and of http and https the user alone, which is a token;
- the value of a URL's query parameter whose name looks secret or that is a signature;
- what follows ``Bearer``, and all of an Authorization header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

SECRET_NAMES = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*KEY*")
"""Patterns of names whose values are masked, in any case."""

MASK = "********"

MASKED_NOTE = f"{MASK} stands for what looks secret: put it in before you run it"
"""What is said when something that was masked is copied to be run."""

# Words of machine learning and of keyboards that the patterns would take for secrets.
_HARMLESS = re.compile(r"TOKENI[SZ](?:ERS?|ED?)|TOKENS|KEY_?VALUE|KEY(?:POINT|WORD|FRAME)S?|KEYBOARD|MONKEY")
_SIGNATURES = ("sig", "signature", "x-amz-signature", "x-goog-signature")

# Each pattern takes time linear in the text: a name is looked for only at the start of a run of its characters, and
# only after a lookahead has found a value behind the run.
# A value ends before the next pair: quotes keep it together, and a comma that no name follows belongs to it.
_PIECE = r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\\[^,;\s]|[^,;\s])"""
_PAIR = re.compile(
    rf"(?<![\w.-])(?=[\w.-]+[=:][^,;\s])[\w.-]*?(?<![?&\w])(?P<name>[A-Za-z_][\w.-]*)(?P<sign>[=:])"
    rf"(?P<value>{_PIECE}+(?:[,;](?![\w.-]*[=:])[^,;\s]*)*)",
    re.DOTALL,
)
_FLAG = re.compile(
    rf"(?<![\w.-])(?=[\w.-]+\s+[^-,;\s])[\w.-]*?(?<![\w-])--?(?P<name>[A-Za-z][\w.-]+)\s+(?P<value>{_PIECE}+)"
)
_QUOTED = re.compile(
    r"""(?P<sign>["'])(?P<name>[\w.-]+)(?P=sign)\s*:\s*(?P<end>["'])(?P<value>(?:\\.|(?!(?P=end)).)+)"""
)
_QUERY = re.compile(r"""[?&](?P<name>[\w.%-]+)=(?P<value>[^&#\s"'<>]+)""")
_PASSWORD = re.compile(r"""(?<=\w)://[^\s/@:"']*:(?P<value>[^\s/@"']+)@""")
_USER = re.compile(r"""\bhttps?://(?P<value>[^\s/@:"']+)@""")
# A backslash belongs to it: an error quotes a token with a line break as `b'Bearer abc\ndef'`.
_BEARER = re.compile(r"\bbearer\s+(?P<value>[\w.~+/=\\-]{8,})", re.IGNORECASE)
_HEADER = re.compile(r"""\bauthorization["']?\s*[:=]\s*["']?(?P<value>[^\s"',;]+(?:\s+[^\s"',;]+)?)""", re.IGNORECASE)
_NAMED = (_PAIR, _FLAG, _QUOTED, _QUERY)
_UNNAMED = (_PASSWORD, _USER, _BEARER, _HEADER)
# Placeholders of values in messages and help: `key=value`, KEY=VALUE,..., KEY1=value1,KEY2=value2, KEY1=v1.
_IS_PLACEHOLDER = re.compile(r"(?:(?:value|VALUE)\d?|v\d)[)`'\"]*(?:,?\.\.\.|[.:,])?")
_IS_FLAG = re.compile(r"--?(?P<name>[A-Za-z][\w.-]+)")
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
    left = _HARMLESS.sub("", name.upper().replace("-", "_"))
    return any(fnmatchcase(left, pattern.upper()) for pattern in (_chosen if patterns is None else patterns))


def mask_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with what looks secret masked; an empty value says nothing and stays."""
    return {name: mask_text(name, value) for name, value in env.items()}


def mask_text(name: str, text: str) -> str:
    """Return the text of a variable, parameter or option with what looks secret masked.

    Args:
        name: its name; all of the text is masked where that looks secret. Empty for a text that has none.
        text: its text, in which what the head of this module lists is masked.
    """
    if not text or text == MASK:
        return text
    if is_secret(name):
        return MASK
    made, end = [], 0
    for start, stop in sorted(_spans(text)):
        if stop > end:
            made += [text[end : max(start, end)], MASK if start >= end else ""]
            end = stop
    return "".join([*made, text[end:]])


def mask_args(args: Sequence[str]) -> list[str]:
    """Return the arguments of a command with what looks secret masked, ``--name value`` in two of them as well."""
    made, is_value = [], False
    for arg in args:
        made.append(MASK if is_value and arg and not arg.startswith("-") else mask_text("", arg))
        flag = _IS_FLAG.fullmatch(arg)
        is_value = flag is not None and is_secret(flag["name"])
    return made


def mask_data(value: Any, name: str = "") -> Any:
    """Return a copy of plain data with what looks secret masked: by the keys, in arguments and in texts.

    Args:
        value: plain data.
        name: the key that it has.
    """
    if isinstance(value, str):
        return mask_text(name, value)
    if isinstance(value, Mapping):
        return {key: mask_data(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value):
            return [MASK if item else item for item in value] if is_secret(name) else mask_args(value)
        return [mask_data(item, name) for item in value]
    return value


def mask_arguments(words: str, name: str, text: str) -> str | None:
    """Return words about the text of a parameter or option with what looks secret in it masked.

    Args:
        words: they may quote the text, or a part of it.
        name: the parameter's name.
        text: its text, which is masked as `mask_text` does.

    Returns:
        the words; None where a part of what is secret is left in them.
    """
    secrets = [text] if is_secret(name) else [text[start:stop] for start, stop in _spans(text)]
    for secret in filter(None, secrets):
        words = re.sub(rf"(?<=[`=:]){re.escape(secret)}(?![\w.-])", MASK, words)
        parts = [part for part in re.split(r"[^\w.-]+", secret) if part]
        if any(re.search(rf"(?<![\w.-]){re.escape(part)}(?![\w.-])", words) for part in parts):
            return None
    return words


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where in a text something looks secret: its start and its end."""
    for pattern in _NAMED:
        for found in pattern.finditer(text):
            if _IS_PLACEHOLDER.fullmatch(found["value"]):
                continue
            query = pattern is _QUERY and found["name"].lower() in _SIGNATURES
            if query or is_secret(found["name"]):
                yield found.span("value")
    for pattern in _UNNAMED:
        for found in pattern.finditer(text):
            yield found.span("value")
