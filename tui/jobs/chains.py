"""Chains: jobs queued behind one another are one row of the table, that of the link that acts now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...specs.status import AppState
from ..rows import JobRow


class Chains:
    """Which jobs belong together, and which of them are shown.

    Args:
        rows: every job by its handle, as it is now: the store's own mapping.
    """

    def __init__(self, rows: Mapping[str, JobRow]) -> None:
        self._rows = rows
        self._after: dict[str, tuple[str, ...]] = {row.handle: row.after for row in rows.values() if row.after}
        self._links: dict[str, tuple[str, ...]] = {}
        self._unfolded: set[str] = set()
        self._join()

    def links(self, row: JobRow) -> list[JobRow]:
        """Return the jobs of a row's chain, the earliest first; empty where it is in none."""
        return [self._rows[handle] for handle in self._links.get(row.handle, ()) if handle in self._rows]

    def is_folded(self, row: JobRow) -> bool:
        """Return whether a row stands for its whole chain."""
        links = self._links.get(row.handle, ())
        return bool(links) and self._unfolded.isdisjoint(links)

    def toggle(self, row: JobRow) -> list[JobRow]:
        """Unfold the chain of a row, or fold it; return the jobs of it."""
        links = self._links.get(row.handle, ())
        self._unfolded = self._unfolded.difference(links) if not self.is_folded(row) else self._unfolded | {*links[:1]}
        return self.links(row)

    def take(self, changed: Iterable[JobRow], removed: Iterable[str]) -> list[JobRow]:
        """Take over changes; return the changed jobs, with all those whose chain changed with them."""
        rows, removed = {row.handle: row for row in changed}, [*removed]
        before = {link for handle in (*rows, *removed) for link in self._links.get(handle, ())}
        # Also where a job comes that others were queued behind.
        is_new = any(
            self._after.get(handle, ()) != row.after or handle in self._awaited for handle, row in rows.items()
        )
        if is_new or any(handle in self._links for handle in removed):
            self._after.update(
                (handle, row.after) for handle, row in rows.items() if row.after or handle in self._after
            )
            for handle in removed:
                self._after.pop(handle, None)
            self._join()
        joined = {link for handle in rows for link in self._links.get(handle, ())}
        return [
            *rows.values(),
            *(self._rows[link] for link in before | joined if link in self._rows and link not in rows),
        ]

    def _join(self) -> None:
        """Find the chains anew: jobs that a dependency joins, however many are between them."""
        chains: dict[str, set[str]] = {}
        self._awaited = {other for after in self._after.values() for other in after if other not in self._rows}
        for handle, after in self._after.items():
            there = [other for other in after if other in self._rows]
            if not there or handle not in self._rows:
                continue
            joined = {handle}.union(there, *(chains[each] for each in (handle, *there) if each in chains))
            chains.update(dict.fromkeys(joined, joined))
        found: dict[str, tuple[str, ...]] = {}
        for handle, joined in chains.items():
            if handle not in found:
                order = sorted(joined, key=lambda each: (self._rows[each].submitted_at or 0.0, each))
                found.update(dict.fromkeys(order, tuple(order)))
        self._links = found

    def fold(
        self, rows: Iterable[JobRow], is_wanted: Callable[[JobRow], bool]
    ) -> tuple[list[JobRow], dict[str, str | None]]:
        """Return which rows to show, and which not, each with the row that stands for it, None for none.

        Args:
            rows: the jobs; of a chain, all that may be shown.
            is_wanted: the test of the view; a folded chain is shown as far as it holds for its links.
        """
        shown: list[JobRow] = []
        hidden: dict[str, str | None] = {}
        done: set[str] = set()
        for row in rows:
            if row.handle in done:
                continue
            links = self.links(row)
            done.update(link.handle for link in links)
            wanted = [link for link in links or (row,) if is_wanted(link)]
            head = _active(wanted).handle if wanted and links and self.is_folded(row) else None
            for link in links or (row,):
                if link in wanted and head in (None, link.handle):
                    shown.append(self._labelled(link, links) if links else link)
                else:
                    hidden[link.handle] = head
        return shown, hidden

    def _labelled(self, row: JobRow, links: list[JobRow]) -> JobRow:
        number = next(number for number, link in enumerate(links, 1) if link.handle == row.handle)
        why = row.why
        if not self.is_folded(row):
            before = [self._rows[handle].name for handle in row.after if handle in self._rows]
            after = f"after {', '.join(before)}" if before else "the first link"
            why = f"{after}; {why}" if why and not why.startswith("after ") else after
        return replace(row, link=f"{number}/{len(links)}", why=why)


def _active(links: list[JobRow]) -> JobRow:
    """Return the link that runs, else the first that waits, else the last one."""
    running = [link for link in links if link.state is AppState.RUNNING]
    return next(iter([*running, *(link for link in links if not link.is_final)]), links[-1])
