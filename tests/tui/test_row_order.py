"""The order of a table's rows against plain sorting, however rows change."""

from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.specs.status import AppState
from torchx_tui.tui.jobs.row_order import RowOrder
from torchx_tui.tui.rows import JobRow


def row(number: int, why: str) -> JobRow:
    return JobRow(f"local_cwd://torchx/{number}", "local_cwd", str(number), AppState.RUNNING, why=why)


STEPS = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["", "a", "b", "c"]), st.booleans()), max_size=60)


@given(steps=STEPS, start=st.dictionaries(st.integers(0, 12), st.sampled_from("abc")), reverse=st.booleans())
def test_it_is_always_sorted(steps, start, reverse):
    rows = {number: row(number, why) for number, why in start.items()}
    order = RowOrder(lambda one: one.why, reverse=reverse)
    order.reset(rows.values())
    for number, why, drop in steps:
        if drop:
            rows.pop(number, None)
            order.drop(row(number, "").handle)
        else:
            rows[number] = row(number, why)
            order.put(rows[number])
    wanted = [one.handle for one in sorted(rows.values(), key=lambda one: (one.why, one.handle), reverse=reverse)]
    assert order.handles() == wanted
    assert [order.handles(index, 1)[0] for index in range(len(order))] == wanted
    assert [order.index(handle) for handle in wanted] == list(range(len(wanted)))
