"""Tables of test data in YAML files."""

from functools import cache
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parent
# Every worker of a test run reads these files: the loader in C is ten times as quick, where PyYAML has it.
_LOADER = getattr(yaml, "CFullLoader", yaml.FullLoader)


@cache
def documents(file):
    """Return the documents of a file, which callers do not change; a Python tuple is one in the file, too."""
    # Our own files: what they can name is not limited.
    return [one for one in yaml.load_all((FOLDER / file).read_text(), _LOADER) if one]


def table(file, name, fields):
    """Parametrize a test by a table: lists of values, or entries by id with some of the fields (None for others)."""
    (tables,) = documents(file)
    names = fields.split()
    if isinstance(tables[name], list):
        return pytest.mark.parametrize(names, tables[name])
    rows = [pytest.param(*map(row.get, names), id=str(key)) for key, row in tables[name].items()]
    return pytest.mark.parametrize(names, rows)
