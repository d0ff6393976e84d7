"""A combined file without an index: what of it came from which stream."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.logs.source.chunks import copied_lengths
from torchx_tui.logs.source.log_file import LogFile

PIECES = st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=6)), max_size=12)
# Few letters, so that both streams often have the same lines.
ALIKE = st.lists(st.tuples(st.booleans(), st.text("a\n", min_size=1, max_size=4).map(str.encode)), max_size=12)


def lengths(folder, whole, *streams):
    paths = {"o": folder / "stdout.log", "e": folder / "stderr.log"}
    for path, data in zip((*paths.values(), folder / "combined.log"), (*streams, whole), strict=True):
        path.write_bytes(data)
    combined = LogFile(folder / "combined.log")
    try:
        return copied_lengths(combined, paths, len(whole))
    finally:
        combined.close()


def is_mix(whole, out, err):
    """Tell whether ``whole`` is made of both, each in its order."""
    ways = {0}
    for at, number in enumerate(whole):
        ways = {way + 1 for way in ways if out[way : way + 1] == bytes([number])} | {
            way for way in ways if err[at - way : at - way + 1] == bytes([number])
        }
    return len(out) in ways and len(whole) == len(out) + len(err)


@given(pieces=st.one_of(PIECES, ALIKE), rest=st.tuples(st.binary(max_size=9), st.binary(max_size=9)))
def test_both_streams_begin_with_what_was_copied(tmp_path_factory, pieces, rest):
    whole = b"".join(piece for _, piece in pieces)
    out, err = (b"".join(piece for is_out, piece in pieces if is_out is wanted) for wanted in (True, False))
    found = lengths(tmp_path_factory.mktemp("log"), whole, out + rest[0], err + rest[1])
    assert is_mix(whole, (out + rest[0])[: found["o"]], (err + rest[1])[: found["e"]])


LONG_OUT, LONG_ERR = (b"".join(b"%s %d\n" % (name, number) for number in range(20_000)) for name in (b"out", b"err"))


@pytest.mark.parametrize(
    ("whole", "out", "err", "found"),
    [
        (
            b"out 1\nerr 1\nout 2\npart of out, err 2\n",
            b"out 1\nout 2\npart of out, and more\n",
            b"err 1\nerr 2\nerr 3\n",
            (25, 12),
        ),
        (
            LONG_OUT + LONG_ERR + b"part of out, err\n",
            LONG_OUT + b"part of out, and more\n",
            LONG_ERR + b"err\n",
            (len(LONG_OUT) + 13, len(LONG_ERR) + 4),
        ),
        # Lines that are different are not parted byte by byte.
        (b"a" * 600 + b"\n", b"a" * 600 + b"\n", b"a" * 600 + b"b\n", (601, 0)),
        # At most 255 ways are followed.
        (b"a\n" * 255, b"a\n" * 300, b"a\n" * 300, ...),
        (b"a\n" * 256, b"a\n" * 300, b"a\n" * 300, None),
        (b"something else\n", b"out 1\nout 2\n", b"err\n", None),
    ],
    ids=["short", "long", "alike", "many ways", "too many ways", "no mix"],
)
def test_copied_lengths_of_streams(tmp_path, whole, out, err, found):
    copied = lengths(tmp_path, whole, out, err)
    if found is ...:
        assert copied is not None
    else:
        assert copied == (found and dict(zip("oe", found, strict=True)))
    # No file stays open.
    assert not any(entry.resolve().parent == tmp_path for entry in Path("/proc/self/fd").iterdir())
