"""Files that somebody else may have put in place."""

import os
import re
import socket
from pathlib import Path

import pytest

from torchx_tui.base.files import (
    LARGE,
    SMALL,
    SOURCE,
    is_file,
    is_folder,
    is_missing,
    open_file,
    path_exists,
    read_file,
    read_tail,
)


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "it is a named pipe, not a regular file"),
        (make_socket, "it is a socket, not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a regular file"),
        (lambda path: path.symlink_to("/dev/full"), "it is a device, not a regular file"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.write_bytes(b"x" * 101), "it has more than 100 bytes"),
        (lambda path: (path.touch(), os.truncate(path, 50 << 30)), "it has more than 100 bytes"),
    ],
    ids=["fifo", "socket", "device", "full device", "folder", "large", "sparse"],
)
def test_what_is_no_small_regular_file_is_refused_at_once(make, words, tmp_path):
    path = tmp_path / "file"
    make(path)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=re.escape(words)) as raised:
        read_file(path, 100)
    assert raised.value.strerror
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_the_kernel_makes_up_is_read_though_its_size_is_0():
    assert read_file("/proc/self/status").startswith(b"Name:")


@pytest.mark.parametrize(
    ("most", "words"),
    [
        *((3 << 20, "3 MB"), (1 << 20, "1 MB"), ((1 << 20) - 1, "1048575 bytes")),
        *((SMALL, "1 MB"), (SOURCE, "16 MB"), (LARGE, "64 MB")),
    ],
)
def test_the_limit_is_named_with_its_unit(most, words, tmp_path):
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", most + 1)
    with pytest.raises(OSError, match=f"it has more than {words}"):
        read_file(tmp_path / "file", most)


def test_a_file_that_is_as_large_as_allowed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_file(path, 100) == b"x" * 100


def test_the_end_of_a_file_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert [read_tail(path, most) for most in (3, 10, 99)] == [b"789", b"0123456789", b"0123456789"]
    assert read_tail(tmp_path / "none", 3) == b""
    assert read_tail(tmp_path, 3) == b""


def test_a_path_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_file("a\0b")
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none")


@pytest.mark.parametrize("path", ["x" * 300, "/".join(["x" * 200] * 30), "a\0b", "\ud800"])
def test_checks_of_odd_paths_raise_nothing(path):
    assert not path_exists(path)
    assert not is_folder(path)
    assert not is_file(path)
    assert isinstance(is_missing(path), bool)


def test_only_what_is_surely_not_there_is_missing(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    assert is_missing(tmp_path / "none")
    assert is_missing(tmp_path / "none" / "below")
    assert not is_missing(tmp_path / "link")
    assert not is_missing(tmp_path / ("x" * 300))
