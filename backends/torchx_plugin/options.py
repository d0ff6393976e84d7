"""Run options: TorchX's declaration to ours."""

from __future__ import annotations

import logging
from typing import Any, get_args, get_origin

from ...specs import runopts

logger = logging.getLogger(__name__)

_PLAIN = (str, int, float, bool)


def our_options(theirs: Any, name: str) -> runopts:
    """Return our run options.

    Args:
        theirs: TorchX's.
        name: the scheduler's, for the log file.
    """
    ours = runopts()
    for key, option in theirs:
        kind = _kind(option.opt_type)
        default = option.default
        if default is not None and not runopts.is_type(default, kind):
            # As a text it would not be what the plugin expects: left out, it takes its own.
            logger.warning("%s: the option %s is %s, its default %r", name, key, option.opt_type, default)
            default = None
        ours.add(
            str(key),
            kind,
            " ".join(str(option.help or "").split()),
            default,
            bool(option.is_required) and default is None,
            aliases=[str(alias) for alias in getattr(option, "aliases", None) or []],
            deprecated_aliases=[str(alias) for alias in getattr(option, "deprecated_aliases", None) or []],
        )
    return ours


def given_options(cfg: dict[str, Any], ours: runopts) -> dict[str, Any]:
    """Return run options as the plugin is given them: those without a value or default of ours are left to its own.

    Args:
        cfg: resolved run options.
        ours: their declaration.
    """
    declared = dict(ours)
    return {
        key: value for key, value in cfg.items() if value is not None or getattr(declared.get(key), "default", None)
    }


def _kind(kind: Any) -> Any:
    """Return one of the types that ours know; text for any other."""
    arguments = [one for one in get_args(kind) if one is not type(None)]
    origin = get_origin(kind)
    if origin is list or kind is list:
        return list[str]
    if origin is dict or kind is dict:
        return dict[str, str]
    if origin is not None and len(arguments) == 1 and arguments[0] in _PLAIN:
        return arguments[0]
    return kind if kind in _PLAIN else str
