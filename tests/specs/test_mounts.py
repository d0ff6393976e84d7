"""Mounts from their text form."""

import pytest

from torchx_tui.specs.errors import MountError
from torchx_tui.specs.mounts import BindMount, DeviceMount, VolumeMount, format_mounts, parse_mounts


def test_all_kinds_in_one_list():
    text = "type=bind,src=/a,dst=/b,readonly,type=volume,source=data,target=/d,type=device,src=/dev/fuse,perm=r"
    assert parse_mounts(text.split(",")) == [
        BindMount("/a", "/b", read_only=True),
        VolumeMount("data", "/d"),
        DeviceMount("/dev/fuse", "/dev/fuse", "r"),
    ]


@pytest.mark.parametrize("source", ["src", "source"])
@pytest.mark.parametrize("target", ["dst", "destination", "target"])
def test_all_names_of_an_option(source, target):
    assert parse_mounts(["type=bind", f"{source}=/a", f"{target}=/b"]) == [BindMount("/a", "/b")]


@pytest.mark.parametrize(
    ("option", "read_only"),
    [
        ("readonly", True),
        ("read_only=true", True),
        ("readonly=1", True),
        ("readonly=yes", True),
        ("readonly=on", True),
        ("readonly=", True),
        ("readonly=off", False),
        ("readonly=0", False),
        ("read_only=false", False),
        ("readonly=no", False),
    ],
)
def test_the_value_of_readonly_counts(option, read_only):
    assert parse_mounts(["type=bind", "src=/a", "dst=/b", option]) == [BindMount("/a", "/b", read_only)]


def test_home_is_expanded(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_mounts(["type=bind", "src=~/data", "dst=/data"]) == [BindMount(f"{tmp_path}/data", "/data")]
    assert parse_mounts(["type=bind", "src=~/data/", "dst=/data"]) == [BindMount(f"{tmp_path}/data/", "/data")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("src=/a,type=bind", "`type=` must come first"),
        ("type=tape,src=/a,dst=/b", "Valid types: bind, volume, device"),
        ("type=bind,src=/a", "wants `dst=`"),
        ("type=bind,dst=/a", "wants `src=`"),
        ("type=device", "wants `src=`"),
        ("type=device,src=/dev/x,perm=rx", "`x` is not valid, use letters of rwm"),
        ("type=bind,src=/a,dst=/b,size=3", "Valid options: type, src"),
        ("type=bind,src=/a,dst=/b,readonly=perhaps", "use true or false"),
        ("type=bind,src=,dst=/b", "`src` wants a value"),
        ("type=bind,src=/a,source=/b,dst=/c", "given twice"),
        ("type=device,src=/dev/x,readonly", "a device mount has no `readonly`"),
    ],
)
def test_what_is_refused(text, words):
    with pytest.raises(MountError) as caught:
        parse_mounts(text.split(","))
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, KeyError)


def test_what_is_written_is_read():
    text = "type=bind,src=/a,dst=/b,readonly,type=volume,src=data,dst=/d,type=device,src=/dev/a,dst=/dev/b,perm=r"
    assert format_mounts(parse_mounts(text.split(","))) == text
