"""States and how they may follow one another."""

import itertools

from torchx_tui.specs.status import AppState, may_follow

S = AppState


def test_nothing_follows_a_final_state():
    for before, after in itertools.product([S.SUCCEEDED, S.FAILED, S.CANCELLED], S):
        assert may_follow(before, after) is (before is after)


def test_live_states_move_forward_and_back_by_preemption():
    assert may_follow(S.SUBMITTED, S.PENDING)
    assert may_follow(S.SUBMITTED, S.FAILED)
    assert may_follow(S.RUNNING, S.PENDING)
    assert not may_follow(S.RUNNING, S.SUBMITTED)
    assert not may_follow(S.PENDING, S.UNSUBMITTED)


def test_unknown_comes_and_goes():
    for state in (S.SUBMITTED, S.PENDING, S.RUNNING):
        assert may_follow(state, S.UNKNOWN)
        assert may_follow(S.UNKNOWN, state)
    assert may_follow(S.UNKNOWN, S.FAILED)
