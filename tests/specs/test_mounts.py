"""Mounts from their text form."""

from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.specs.errors import MountError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount, format_mounts, parse_mounts

ROWS = toml_table(Path(__file__).with_name("mounts.toml"))


def test_all_kinds_in_one_list():
    text = "type=bind,src=/a,destination=/b,readonly,type=volume,source=data,target=/d,type=device,src=/dev/fuse,perm=r"
    assert parse_mounts(text.split(",")) == [
        BindMount("/a", "/b", read_only=True),
        VolumeMount("data", "/d"),
        DeviceMount("/dev/fuse", "/dev/fuse", "r"),
    ]


@pytest.mark.parametrize(("option", "read_only"), ROWS["readonly"])
def test_the_value_of_readonly_counts(option, read_only):
    assert parse_mounts(["type=bind", "src=/a", "dst=/b", option]) == [BindMount("/a", "/b", read_only)]


@pytest.mark.parametrize(("text", "words"), ROWS["refused"])
def test_what_is_refused(text, words):
    with pytest.raises(MountError) as caught:
        parse_mounts(text.split(","))
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, KeyError)


def test_what_is_written_is_read():
    text = "type=bind,src=/a,dst=/b,readonly,type=volume,src=data,dst=/d,type=device,src=/dev/a,dst=/dev/b,perm=r"
    assert format_mounts(parse_mounts(text.split(","))) == text
