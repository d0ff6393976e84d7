"""An AppDef that a backend keeps with the job: as text in a label or an annotation."""

from __future__ import annotations

import copy
from collections.abc import Collection

from ...specs.errors import AppDefError
from ...specs.roles import AppDef, macros
from ...specs.serialize import appdef_from_json, appdef_to_json

RANK0_HOST = "TORCHX_RANK0_HOST"
"""TorchX's variable with the name of the host on which the first replica runs."""

LAUNCH_VARIABLES = ("TORCHX_JOB_ID", "TORCHX_INTERNAL_SESSION_ID", RANK0_HOST, "TORCHX_IMAGE")
"""What a launch adds to the environment, and adds anew at each."""


def kept_text(app: AppDef, most: int, built: Collection[str] = ()) -> tuple[str, str]:
    """Return the text that keeps an AppDef, and why there is none; one of them is empty.

    Args:
        app: the AppDef, as it was launched.
        most: how many bytes the text may have.
        built: images that have the workspace of their role in them, beside those that have no name.
    """
    kept = copy.deepcopy(app)
    for role in kept.roles:
        for name in LAUNCH_VARIABLES:
            role.env.pop(name, None)
        if role.image.startswith("sha256:") or role.image in built:
            role.workspace = None
    text = appdef_to_json(kept, strict=False)
    size = len(text.encode())
    if size > most:
        return "", f"the AppDef is left out: it has {size // 1024} KB, and {most // 1024} KB is most"
    return text, ""


def read_kept(text: str, left_out: str, notes: list[str]) -> AppDef | None:
    """Return the AppDef that a text keeps, None where there is none.

    Args:
        text: what `kept_text` gave.
        left_out: why it gave none.
        notes: gets why there is no AppDef, where that is known.
    """
    if left_out:
        notes.append(left_out)
        return None
    if not text:
        return None
    try:
        return appdef_from_json(text)
    except AppDefError as error:
        notes.append(f"the AppDef that is kept with the job cannot be read: {error}")
        return None


def escape_macros(text: str) -> str:
    """Return the text of a role that is ``text`` after its macros were replaced."""
    return text.replace("$", "$$") if macros.Values("", "", "").substitute(text) != text else text
