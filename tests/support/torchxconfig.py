"""What `.torchxconfig` says, by the calls that TorchX has for it."""

from __future__ import annotations

from typing import Any

from torchx_tui.backends.torchxconfig import find_configs, merged, option_value, read_config, section_options
from torchx_tui.base.errors import ConfigError
from torchx_tui.specs.run_options import runopts


def apply(scheduler: str, cfg: dict[str, Any], known: runopts, dirs: list[str] | None = None) -> list[str]:
    """Add what the files have for a scheduler to run options, of which given ones stay; return the warnings."""
    values = merged(read_config(path) for path in find_configs(dirs)).get(scheduler, {})
    given = {known.canonical_key(name) or name for name in cfg}
    mine = {key: value for key, value in values.items() if known.canonical_key(key) not in given}
    options, warnings, errors = section_options(mine, known)
    if errors:
        raise ConfigError(errors[0])
    cfg.update({name: option_value(value, known) for name, value in options.items()})
    return warnings


def load_sections(prefix: str, dirs: list[str] | None = None) -> dict[str, dict[str, str]]:
    """Return the sections ``[PREFIX:NAME]`` of the files by name, their values as text."""
    parts = {name.partition(":"): values for name, values in merged(map(read_config, find_configs(dirs))).items()}
    return {
        name: {key: value.text for key, value in values.items()}
        for (before, _, name), values in parts.items()
        if before and before == prefix and name
    }
