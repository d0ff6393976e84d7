"""Where a log is resumed: a cursor counts the messages from its time on, however old the last one was."""

from torchx_tui.logs.source.log_place import LogPlace
from torchx_tui.logs.source.stream import TimeCursor

SPAN = 1 << 30  # about a second


def cursor_after(times):
    """Return the cursor after messages of these times; it must count those from its time on."""
    place = LogPlace(None)
    assert {place.is_new(at) for at in times} == {True}
    found = place.cursor
    assert found
    assert found.seen == sum(at >= found.nanoseconds for at in times)
    assert found.nanoseconds <= times[-1]
    return found


def test_cursor_in_a_log_in_order():
    cursor_after([0])
    cursor_after([7 * SPAN + number for number in range(10)])
    assert cursor_after([number * SPAN // 4 for number in range(400)]).seen < 20


def test_cursor_after_a_late_message():
    many = [number * SPAN // 2 for number in range(3_000)]
    for late in (0, 17, 999, 1_499):
        cursor_after([*many, late * SPAN])
        cursor_after([*many, late * SPAN + 3, *many[:5]])


def test_messages_before_the_cursor_are_skipped():
    times = [number * SPAN // 2 for number in range(50)]
    cursor = cursor_after(times)
    place = LogPlace(cursor)
    again = [at for at in times if at >= cursor.nanoseconds]
    assert (place.cursor, place.left) == (cursor, len(again))
    # Some engines send older ones too.
    assert {place.is_new(at) for at in (cursor.nanoseconds - 1, *again)} == {False}
    assert place.left == 0
    assert place.is_new(times[-1])
    assert place.cursor == TimeCursor(cursor.nanoseconds, cursor.seen + 1)
    assert place.is_new(times[-1] - 5)
    assert place.latest == times[-1]


def test_place_of_exact_and_missing_messages():
    exact = LogPlace(TimeCursor(7 * SPAN, 2))
    assert [exact.is_new(7 * SPAN) for _ in range(3)] == [False, False, True]
    missing = LogPlace(TimeCursor(7 * SPAN, 2))
    missing.skip_missing()
    assert missing.is_new(7 * SPAN)
    assert (LogPlace(None).cursor, LogPlace(None).latest) == (None, -1)
