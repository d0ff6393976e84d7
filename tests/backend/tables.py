"""The inputs of this folder's tests, with what is expected of them."""

from pathlib import Path

from support.tables import toml_table

TABLES = toml_table(Path(__file__).with_name("tables.toml"))
