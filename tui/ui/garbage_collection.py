"""Python's collector of garbage, kept out of the way of keys."""

from __future__ import annotations

import gc

# Few young objects at a time, so that each look is short. The full one, which looks at all, is left to
# `collect_while_idle`; only of who never pauses as much gathers that it comes by itself: some ten megabytes.
_THRESHOLDS = (2_000, 10, 60)
# Looks at the middle generation after which a full collection is worth its time: a screen that was left.
_WORTH_IT = 3


def spare_living() -> None:
    """Let the collector pass over all objects that there are now, for ever.

    A full collection would look at each of them, at everything that was imported most of all, and holds up keys for 50
    to 100 ms. To be called when a large part of the program has just been loaded, and not again and again: what is
    garbage at that moment is never freed.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def collect_while_idle() -> None:
    """Free the screens that were left, whose parts refer to one another; to be called while nobody types.

    It takes up to 100 ms where there is something to free, and else nothing.
    """
    if gc.get_count()[2] >= _WORTH_IT:
        gc.collect()
