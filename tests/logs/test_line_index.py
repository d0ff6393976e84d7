"""Which segments share a row of the index."""

from dataclasses import replace

import pytest

from torchx_tui.logs.source.segment import LogSegment
from torchx_tui.logs.text.shown import Rendering
from torchx_tui.logs.view.line_index import LineIndex, SegmentTable

FIRST = LogSegment(1, 10, 14, 2, 5.0, "o", rendering=Rendering.UNEDITED)
SECOND = LogSegment(1, 14, 20, 1, 5.05, "o", rendering=Rendering.EDITED)


def joined(first, second, backwards):
    """Add two segments in either order; return whether they share a row, and the table."""
    table = SegmentTable()
    table.add(second if backwards else first)
    return table.precede(first, 10) if backwards else table.follow(second, 10), table


@pytest.mark.parametrize("backwards", [False, True])
def test_segments_that_follow_each_other_closely_share_a_row(backwards):
    shared, table = joined(FIRST, SECOND, backwards)
    assert (shared, table.end, table.lines) == (True, 1, 3)
    assert table.row(0) == (1, 10, 20, 3, Rendering.EDITED)
    assert table.origin(0) == (5.0, "o")
    assert (table.first_at(5.0), table.first_at(5.06)) == (0, None)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"end": 21},
        {"start": 15},
        {"file": 2},
        {"stream": "e"},
        {"time": None},
        {"time": 4.9},
        {"time": 5.11},
    ],
    ids=repr,
)
def test_others_have_rows_of_their_own(changes, backwards):
    shared, table = joined(FIRST, replace(SECOND, **changes), backwards)
    assert (shared, table.end) == (False, 1)
    assert table.lines == (replace(SECOND, **changes) if backwards else FIRST).lines


def segments(file, *starts):
    """Return segments of one line each, long after each other."""
    return [LogSegment(file, start, start + 10, 1, float(start), "o") for start in starts]


@pytest.mark.parametrize(
    ("file", "bounds"), [(1, (-1, 3)), (2, (-3, 3)), (3, (1, 3)), (4, (3, 3)), (5, (-4, 3))], ids=repr
)
def test_with_a_file_go_all_lines_up_to_its_last(file, bounds):
    index = LineIndex()
    # From the latest backwards: lines -1 to -4.
    index.prepend([*segments(2, 500)[:0], *segments(6, 500), *segments(1, 400, 300), *segments(2, 200)])
    index.append([*segments(3, 600), *segments(6, 700), *segments(4, 800)])
    assert index.bounds() == (-4, 3)
    known = file != 5
    assert index.drop_file(file) is known
    assert index.bounds() == bounds
    assert index.gone == bounds[0] + 4
    assert not index.drop_file(file)


@pytest.mark.parametrize("newer", [False, True])
def test_a_segment_in_a_shared_row_grows_there(newer):
    index = LineIndex()
    other = LogSegment(2, 0, 10, 1, 1.0, "o")
    last = replace(SECOND, end=18)
    if newer:
        index.append([other, replace(FIRST), last])
    else:
        # Backwards, the last line of a file is the first one that comes.
        index.append([other])
        index.prepend([LogSegment(3, 0, 10, 1, 9.0, "o"), last, replace(FIRST)])
    index.grow(replace(last, end=20, key=last.key))
    slices = index.slices(*((1, 3) if newer else (-4, 3)))[1]
    assert [(found.file, found.start, found.end) for found in slices] == [(1, 10, 20)]
    assert index.slices(0, 1)[1][0].end == 10
