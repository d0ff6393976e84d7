"""Which jobs the table shows: one backend or all, mine or everybody's, those that a filter lets through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..rows import JobRow
from .filter import parse_filter


@dataclass(frozen=True)
class JobView:
    """A choice of jobs.

    Attributes:
        backend: the scheduler whose jobs are shown, None for all.
        filter: the filter as typed; see `parse_filter`.
        user: whose jobs are shown, empty for everybody's.
        torchx_only: leave out what TorchX did not launch.
        history: show launches that no backend knows any more.
    """

    backend: str | None = None
    filter: str = ""
    user: str = ""
    torchx_only: bool = True
    history: bool = False
    _test: Callable[[JobRow], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Parsed once: it is asked of every row.
        object.__setattr__(self, "_test", parse_filter(self.filter))

    def has(self, row: JobRow) -> bool:
        """Whether a job is shown."""
        return (
            self.backend in (None, row.scheduler)
            and (self.history or not row.history)
            and not (self.torchx_only and row.foreign)
            and (not self.user or row.user == self.user)
            and self._test(row)
        )

    @property
    def words(self) -> list[str]:
        """What is left out or added beside the filter, in words."""
        found = [f"only {self.user}'s"] if self.user else []
        if not self.torchx_only:
            found.append("not only TorchX's")
        return [*found, "with history"] if self.history else found
