"""Python's collector of garbage, kept out of the way of keys."""

from __future__ import annotations

import gc

# Few young objects at a time, so that each look is short; the full one, which looks at all, comes seldom.
_THRESHOLDS = (2_000, 10, 1000)


def spare_living() -> None:
    """Let the collector pass over all objects that there are now, for ever.

    A full collection would look at each of them, at everything that was imported most of all, and holds up keys for 50
    to 100 ms. To be called when a large part of the program has just been loaded, and not again and again: what is
    garbage at that moment is never freed.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
