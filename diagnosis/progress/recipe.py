"""What the numbers of a line mean, for all lines of one shape.

The shape of a line is its text with every number taken out. A trainer prints thousands of lines of few shapes: the
grammar reads the first line of each, and the others are a split and some indexing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

# A number is no part of a word (`top5`, `Acc@1`) and has its thousands separated or not at all. Its sign counts where
# no word or number stands before it: `1-5` and `2026-11-22` have none. A set of characters comes first, and what was
# before them is looked at afterwards: `re` then skips to the next of them, which is four times as fast.
_AFTER_FIRST_DIGIT = r"(?:\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d*\.?\d*)(?:[eE][-+]?\d+)?"
_AFTER_POINT = r"\d+(?:[eE][-+]?\d+)?"
_AFTER_FIRST_LETTER = r"(?:an|aN|AN|nf|NF|nfinity)(?!\w| iterations| values?\b)"
_NUMBER = re.compile(
    r"([-+.\dnNiI](?:"
    rf"(?<=\d)(?<![\w@].){_AFTER_FIRST_DIGIT}"
    rf"|(?<=[-+])(?<![\w.\])].)(?:\d{_AFTER_FIRST_DIGIT}|\.{_AFTER_POINT}|[nNiI]{_AFTER_FIRST_LETTER})"
    rf"|(?<=\.)(?<![\w@].){_AFTER_POINT}"
    rf"|(?<=[nNiI])(?<![\w@].){_AFTER_FIRST_LETTER}"
    r"))"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-B0]|\x08+")
_SPACES = re.compile("  +")
# The filled and the empty part of bars, by tqdm, rich and keras.
_FILL = re.compile("[▏▎▍▌▋▊▉█▐░▒▓━╸╺─]+")
FILL = "█"
"""What stands for a bar in a shape."""
# What stands for a number in a shape: nothing that is printed, as `#` is in bars.
_ANY_NUMBER = "\x01"
NAME_NUMBER = "\x00"
"""What stands for a number within a name."""
LONGEST_LINE = 8192
_MOST_NUMBERS = 400


class Source(NamedTuple):
    """Where a number of the line is.

    Attributes:
        index: which of the line's numbers.
        scale: it is multiplied by this, as of `1.2k`.
    """

    index: int
    scale: float = 1.0

    def of(self, numbers: list[str]) -> float:
        """Return the value in a line with these numbers."""
        return to_float(numbers[self.index]) * self.scale


class ValueSource(NamedTuple):
    """A named value.

    Attributes:
        name: its name; `NAME_NUMBER` in it stands for the number ``name_index``, as in `lr (group 0)`.
        index: which of the line's numbers.
        scale: it is multiplied by this.
        unit: what is printed after it.
        name_index: the number within the name; -1 if there is none.
    """

    name: str
    index: int
    scale: float
    unit: str
    name_index: int = -1


@dataclass(frozen=True)
class Recipe:
    """What the numbers of lines of one shape mean.

    Attributes:
        step: how far the run is, or the epoch where `in_epoch`.
        total: where it ends.
        epoch: the number of the epoch.
        epochs: the number of epochs.
        rate: steps a second, or seconds a step where `inverse_rate`.
        values: the named values.
        in_epoch: step and total are those of one epoch.
        is_eval: the line tells of an evaluation.
        bar: the words before a progress bar; None if the line is none.
        is_drawn: the line is a state of a progress bar with a step and values.
        is_box: the line is a row of a box table, whose step is in another row.
        has_eta: the line has a time left in words of its own.
        rank: the rank that is named before the message; -1 if there is none.
        rank_within: which of its numbers is the rank, before the message or as in `epoch 1 rank 3 loss 0.5`.
    """

    step: Source | None = None
    total: Source | None = None
    epoch: Source | None = None
    epochs: Source | None = None
    rate: Source | None = None
    inverse_rate: bool = False
    values: tuple[ValueSource, ...] = field(default=())
    in_epoch: bool = False
    is_eval: bool = False
    bar: str | None = None
    is_drawn: bool = False
    is_box: bool = False
    has_eta: bool = False
    rank: int = -1
    rank_within: Source | None = None

    @property
    def is_empty(self) -> bool:
        """Whether such lines say nothing."""
        return not (self.values or self.step or self.epoch)

    def rank_of(self, numbers: list[str]) -> int:
        """Return the rank that prints a line with these numbers; -1 where it tells none."""
        return self.rank if self.rank_within is None else int(self.rank_within.of(numbers))

    def read_values(self, numbers: list[str]) -> list[tuple[str, float, str]]:
        """Return the named values of a line with these numbers: name, value, and that as it is printed."""
        values = []
        for name, index, scale, unit, name_index in self.values:
            text = numbers[index]
            try:
                number = float(text)
            except ValueError:
                number = to_float(text)
            if name_index >= 0:
                name = name.replace(NAME_NUMBER, numbers[name_index])
            values.append((name, number * scale, text + unit))
        return values


def to_float(text: str) -> float:
    """Convert a number of a line; nan if it is too large for one."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return math.nan


def split_line(line: bytes) -> tuple[str, list[str]] | None:
    """Split a line into its parts: texts at even places, numbers at odd ones.

    Returns:
        the shape and the parts; None for a line that is too long, or has too many numbers.
    """
    if len(line) > LONGEST_LINE:
        return None
    text = line.decode(errors="replace")
    if "\x1b" in text or "\x08" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = _FILL.sub(FILL, text)
    parts = _NUMBER.split(text)
    if not 3 <= len(parts) <= 2 * _MOST_NUMBERS:
        return None
    return _SPACES.sub(" ", _ANY_NUMBER.join(parts[::2])), parts
