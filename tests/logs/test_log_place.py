"""Where a log is resumed: a place counts every message from its time on, however old the last one was."""

from torchx_tui.logs.source.log_place import LogPlace
from torchx_tui.logs.source.stream import TimeCursor

SPAN = 1 << 30  # about a second


def counted(times, cursor=None):
    """Return the place after messages of these times; it must count those from its time on."""
    place = LogPlace(cursor)
    for at in times:
        assert place.is_new(at)
    found = place.cursor
    assert found is not None
    assert found.seen == sum(at >= found.nanoseconds for at in times)
    assert found.nanoseconds <= times[-1]
    return found


def test_a_place_in_a_log_that_is_in_order():
    counted([0])
    counted([7 * SPAN + number for number in range(10)])
    found = counted([number * SPAN // 4 for number in range(400)])
    assert found.seen < 20


def test_a_place_after_a_message_that_came_late():
    many = [number * SPAN // 2 for number in range(3_000)]
    for late in (0, 17, 999, 1_499):
        counted([*many, late * SPAN])
        counted([*many, late * SPAN + 3, *many[:5]])


def test_messages_that_were_read_before_are_passed_over():
    times = [number * SPAN // 2 for number in range(50)]
    cursor = counted(times)
    place = LogPlace(cursor)
    again = [at for at in times if at >= cursor.nanoseconds]
    assert place.left == len(again)
    assert not place.is_new(cursor.nanoseconds - 1)  # some engines send older ones too
    assert [place.is_new(at) for at in again] == [False] * len(again)
    assert place.left == 0
    assert place.is_new(times[-1])
    assert place.cursor == TimeCursor(cursor.nanoseconds, cursor.seen + 1)
    assert place.is_new(times[-1] - 5)
    assert place.latest == times[-1]
    exact = LogPlace(TimeCursor(7 * SPAN, 2))
    assert [exact.is_new(7 * SPAN) for _ in range(3)] == [False, False, True]
    other = LogPlace(cursor)
    other.skip_missing()
    assert other.is_new(times[-1])
    assert (LogPlace(None).cursor, LogPlace(None).latest) == (None, -1)
    assert LogPlace(cursor).cursor == cursor
