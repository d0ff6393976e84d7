"""Tables of test data in files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def toml_table(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def tables(module: str) -> Callable[[str, str], pytest.MarkDecorator]:
    """Return what parametrizes a test by a table of the YAML file beside its module: test_x.py has x.yaml.

    That function takes the name of a table, whose rows are lists of values, and the names of the fields.
    """
    path = Path(module)
    found = yaml.safe_load(path.with_name(f"{path.stem.removeprefix('test_')}.yaml").read_text(encoding="utf-8"))
    return lambda name, fields: pytest.mark.parametrize(fields.split() if " " in fields else fields, found[name])
