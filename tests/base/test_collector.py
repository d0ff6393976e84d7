"""Pauses of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from torchx_tui.base.collector import paused_collector


def test_collector_is_paused_until_the_last_one_ends():
    assert gc.isenabled()
    with paused_collector():
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_error_ends_the_pause():
    with pytest.raises(ValueError, match="odd"), paused_collector():
        raise ValueError("odd")
    assert gc.isenabled()


def test_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
