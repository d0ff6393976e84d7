"""Names that an API server takes: of namespaces and labels."""

from __future__ import annotations

import re

from ...specs.errors import AppDefError

# One label of a DNS name.
_LONGEST = 63
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_LABEL_ENDS = "_.-"


def label_value(text: str) -> str:
    """Return a text as the value of a label: TorchX's, without the signs that a server refuses at its ends."""
    return _NO_LABEL.sub(".", text)[:_LONGEST].strip(_LABEL_ENDS)


def check_namespace(namespace: str) -> None:
    """Refuse a namespace that no server can have.

    Raises:
        AppDefError: its name has other characters, or too many.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise AppDefError(
            f"The namespace is {namespace!r}: it can have small letters, digits and - between them, 63 at most"
        )
