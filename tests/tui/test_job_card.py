"""The card under the table: the facts of the job at the cursor."""

from dataclasses import replace

import pytest

from torchx_tui.backends.types import DescribeAppResponse
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import MISSING, AppState, ReplicaStatus, RoleStatus
from torchx_tui.tui.jobs.card import card_lines
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.glyphs import UNICODE

ROW = JobRow("slurm://torchx/41", "slurm", "41", AppState.RUNNING)


def lines(described, row=ROW):
    """Return the card's lines below its first two."""
    return [line.plain.rstrip() for line in card_lines(row, described, UNICODE, 0.0)[2:]]


def drawn(counts, step=1):
    """Return the lines of a job with so many replicas in each state."""
    states = [state for state, number in counts for _ in range(number)]
    replicas = [ReplicaStatus(step * n, state, "task", "") for n, state in enumerate(states)]
    return lines(DescribeAppResponse("41", AppState.RUNNING, roles_statuses=[RoleStatus("task", replicas[::-1])]))


def test_many_replicas_have_rows_on_the_card():
    done, failed, waits = AppState.SUCCEEDED, AppState.FAILED, AppState.PENDING
    assert drawn([(AppState.RUNNING, 16)]) == ["replicas    task  ●●●●●●●●●●●●●●●●  16/16"]
    assert drawn([(AppState.RUNNING, 17)]) == [f"0-16        ●●●●● ●●●●● ●●●●● ●●{' ' * 11}● 17 running"]
    # Of more than fit, those from the first on that has not succeeded; the numbers of tasks may have gaps.
    full, open_ = " ".join(["✓" * 5] * 5), " ".join(["○" * 5] * 5)
    assert drawn([(done, 30), (failed, 1), (waits, 1000)], step=2) == [
        f"50-98       {full[:6]}✗{open_[7:]}  ✗ 1 failed",
        f"100-148     {open_}  ✓ 30 done",
        f"150-198     {open_}  ○ 1,000 pending",
        f"200-248     {open_}",
    ]
    assert drawn([(done, 1000)])[0] == f"0-24        {full}  ✓ 1,000 done"
    five = [(done, 99), *((state, 1) for state in (failed, AppState.CANCELLED, AppState.RUNNING, waits))]
    assert drawn(five)[-1].endswith("  ● 1 running  ○ 1 pending")


@pytest.mark.parametrize(
    ("resource", "each"),
    [
        (Resource(1, 0, 512), ["each        1 cpu   512 MB"]),
        (Resource(0, 1, 2048), ["each        1 gpu   2.0 GB"]),
        (Resource(2, 8, 1024), ["each        2 cpu   8 gpu   1.0 GB"]),
        (Resource(3, 0, -1), ["each        3 cpu"]),
        (Resource(-1, -1, 512), []),
    ],
)
def test_what_each_replica_asks_for(resource, each):
    role = Role("task", "image", entrypoint="sh", args=["-c", "a\nb"], num_replicas=2, resource=resource)
    described = DescribeAppResponse("41", AppState.RUNNING, roles=[role], log_dir="/logs")
    first, last = ["replicas    task    0/2", "command     sh -c a b"], ["log dir     /logs"]
    assert lines(described) == [*first, *each, *last]


def test_what_a_backend_does_not_tell_takes_no_line():
    assert lines(DescribeAppResponse("41", AppState.RUNNING, roles=[Role("task", "", entrypoint=MISSING)])) == [
        "replicas    task    0/1"
    ]
    assert lines(None) == []


def test_before_it_is_described_the_row_tells():
    row = replace(ROW, component="utils.sh", arguments="--n 1", group="sweep-1", running=1, wanted=2)
    assert lines(None, row) == ["component   utils.sh  --n 1", "group       sweep-1", "replicas    1/2"]
