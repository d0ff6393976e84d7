"""A combined file without an index: what of it came from which stream."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.logs.source import chunks
from torchx_tui.logs.source.chunks import copied_lengths
from torchx_tui.logs.source.log_file import LogFile

PIECES = st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=6)), max_size=12)
# Few letters, so that both streams often have the same lines.
ALIKE = st.lists(st.tuples(st.booleans(), st.text("a\n", min_size=1, max_size=4).map(str.encode)), max_size=12)


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
    folder = tmp_path_factory.mktemp("log")
    whole = b"".join(piece for _, piece in pieces)
    out = b"".join(piece for is_out, piece in pieces if is_out) + rest[0]
    err = b"".join(piece for is_out, piece in pieces if not is_out) + rest[1]
    found = lengths(folder, whole, out, err)
    assert found is not None
    assert is_mix(whole, out[: found["o"]], err[: found["e"]])


def test_lines_that_are_told_apart_are_counted_exactly(tmp_path):
    whole = b"out 1\nerr 1\nout 2\npart of out, err 2\n"
    found = lengths(tmp_path, whole, b"out 1\nout 2\npart of out, and more\n", b"err 1\nerr 2\nerr 3\n")
    assert found == {"o": len(b"out 1\nout 2\npart of out, "), "e": len(b"err 1\nerr 2\n")}


def test_a_piece_that_ended_within_a_line_is_found_in_a_long_log(tmp_path):
    out, err = (b"".join(b"%s %d\n" % (name, number) for number in range(20_000)) for name in (b"out", b"err"))
    assert len(out) + len(err) > chunks._MAX_BYTES_SINGLY
    whole = out + err + b"part of out, err\n"
    found = lengths(tmp_path, whole, out + b"part of out, and more\n", err + b"err\n")
    assert found == {"o": len(out + b"part of out, "), "e": len(err + b"err\n")}


def test_lines_that_are_told_apart_are_not_taken_byte_by_byte(tmp_path):
    line = b"a" * 600
    assert lengths(tmp_path, line + b"\n", line + b"\n", line + b"b\n") == {"o": 601, "e": 0}


def test_with_too_many_ways_it_is_given_up(tmp_path):
    out = err = b"a\n" * 300
    assert lengths(tmp_path, b"a\n" * 255, out, err) is not None
    assert lengths(tmp_path, b"a\n" * 256, out, err) is None
    # No file stays open.
    assert not any(entry.resolve().parent == tmp_path for entry in Path("/proc/self/fd").iterdir())


def test_what_is_no_mix_of_both_is_not_parted(tmp_path):
    assert lengths(tmp_path, b"something else\n", b"out 1\nout 2\n", b"err\n") is None


def lengths(folder, whole, out, err):
    for name, data in (("combined.log", whole), ("stdout.log", out), ("stderr.log", err)):
        (folder / name).write_bytes(data)
    combined = LogFile(folder / "combined.log")
    try:
        return copied_lengths(combined, {"o": folder / "stdout.log", "e": folder / "stderr.log"}, len(whole))
    finally:
        combined.close()
