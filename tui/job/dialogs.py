"""The questions before something ends: cancel, delete, quit. The first button is the harmless one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from textual.app import App

from ...backends.types import BY_TORCHX
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..format import count, cut, split_name
from ..rows import JobRow, backend_word
from ..ui.dialog import MOST_LISTED, TEXT_WIDTH, AskDialog
from ..ui.job_cells import name_text, state_text, state_times_text
from ..ui.palette import Text
from ..ui.theme import glyphs_of, now_of

if TYPE_CHECKING:
    from ...backends.api import Finding
    from ...backends.types import JobAction

# Lines that say why something failed with one of them.
MOST_WHY = 2


def cancel_dialog(
    app: App[Any], rows: Sequence[JobRow], find_lost_logs: Callable[[], list[str]] = list, links: Sequence[JobRow] = ()
) -> AskDialog:
    """Return the question before jobs are cancelled; `a` answers it for all links of a chain.

    Args:
        app: the app.
        rows: the jobs.
        find_lost_logs: returns what becomes of logs that are not kept, a sentence for each backend; called in a thread.
        links: the links that have not ended, if the job is one of several in a chain.
    """
    one = len(rows) == 1

    def body(lost_logs: list[str] | None) -> list[Text]:
        return _body(
            app,
            rows,
            "Each process gets SIGTERM, and SIGKILL if it does not end.",
            f"The {'job stays' if one else 'jobs stay'} listed as Cancelled"
            f"{', logs are kept.' if lost_logs == [] else '.'}",
            *(line for sentence in lost_logs or () for line in wrap(plain(sentence), TEXT_WIDTH)),
            command="cancel",
            last=f"Its chain has {count(len(links) - 1, 'other link')}, which may then never start." if links else "",
        )

    question, buttons = "Cancel this job?", {"y": "Cancel the job"}
    if links:
        question = f"Cancel this link, or all {len(links)}?"
        buttons = {"y": "This link", "a": f"All {len(links)} links"}
    elif not one:
        question, buttons = f"Cancel {len(rows)} jobs?", {"y": f"Cancel {len(rows)} jobs"}
    buttons = {"": "Keep running", **buttons}
    return AskDialog(question, body(None), buttons, len(rows), find_body=lambda: body(find_lost_logs()))


def delete_dialog(app: App[Any], rows: Sequence[JobRow]) -> AskDialog:
    """Return the question before jobs are deleted."""
    one = len(rows) == 1
    live = sum(not row.is_final and not row.history for row in rows)
    theirs = sum(BY_TORCHX in row.notes for row in rows)
    facts = [f"{count(live, 'active job')} {'is' if live == 1 else 'are'} cancelled first."] if live else []
    if theirs == len(rows):
        which = "The job is no longer shown. Its" if one else "The jobs are no longer shown. Their"
        facts.append(f"{which} logs are in TorchX's folder and stay.")
    else:
        facts.append(f"Logs and history of {'it' if one else 'them'} are removed. This cannot be undone.")
        if theirs:
            facts.append(f"The logs of {count(theirs, 'job')} are in TorchX's folder and stay.")
    buttons = {"": "Keep", "y": "Delete" if one else f"Delete {len(rows)} jobs"}
    question = "Delete this job?" if one else f"Delete {len(rows)} jobs?"
    return AskDialog(question, _body(app, rows, *facts, command="delete"), buttons, len(rows))


def ending_dialog(app: App[Any], rows: Sequence[JobRow], action: JobAction, value: str = "") -> AskDialog:
    """Return the question before an action that ends what runs."""
    one, verb = len(rows) == 1, action.name.capitalize()
    jobs = count(len(rows), "job")
    question = f"{verb} {cut(plain(value), 40, glyphs_of(app).cut) or ('this job' if one else jobs)}?"
    buttons = {"": "Leave it", "y": verb if one else f"{verb} {jobs}"}
    return AskDialog(question, _body(app, rows, action.what), buttons, len(rows))


def quit_dialog(app: App[Any], handles: Sequence[str], warnings: Sequence[Finding] = ()) -> AskDialog:
    """Return the question what becomes of the jobs that this process launched on this machine.

    Args:
        app: the app.
        handles: those that run.
        warnings: what may end them although they are kept.
    """
    glyphs = glyphs_of(app)
    body = [Text(f"{count(len(handles), 'job')} launched here, still running on this machine:", "$style-muted"), Text()]
    for handle in handles[:MOST_LISTED]:
        body.append(name_text(plain(handle.rpartition("/")[2]), TEXT_WIDTH, glyphs, bold=True))
    body += _more(len(handles))
    body += [Text(), Text("Jobs that you keep continue; the next start lists them.", "$style-muted")]
    for warning in warnings:
        body.append(Text(f"Warning: {plain(warning.what)}.", "$style-pending"))
        body += [Text(line, "$style-muted") for line in wrap(f"To prevent it: {plain(warning.hint)}", TEXT_WIDTH)]
    return AskDialog("Quit?", [*body, Text()], {"k": "Keep running", "y": "Cancel them"})


def launching_dialog(names: Sequence[str]) -> AskDialog:
    """Return the question whether launches that are under way are given up."""
    body = [Text("Being launched, and not running yet:", "$style-muted"), Text()]
    body += [Text(plain(name), "bold $style-text", no_wrap=True, overflow="ellipsis") for name in names[:MOST_LISTED]]
    body += [*_more(len(names)), Text(), Text("Quitting now cancels the launch.", "$style-muted"), Text()]
    return AskDialog("Quit?", body, {"": "Wait", "y": "Cancel it and quit"})


def results_dialog(app: App[Any], results: Sequence[tuple[str, str]]) -> AskDialog:
    """Return the list of how something went with several jobs, those that failed first.

    Args:
        app: the app.
        results: each job with why it failed, empty where it did not.
    """
    glyphs = glyphs_of(app)
    lines: list[Text] = []
    for name, failure in sorted(results, key=lambda result: not result[1]):
        line = Text(f"{glyphs.bad if failure else glyphs.ok} ", "$style-failed" if failure else "$style-running")
        line.append_text(name_text(name, TEXT_WIDTH - 2, glyphs))
        why = wrap(plain(failure), TEXT_WIDTH - 4)[:MOST_WHY]
        lines += [line, *(Text(f"    {part}", "$style-muted") for part in why)]
    failed = sum(bool(failure) for _, failure in results)
    title = f"{failed:,} of {count(len(results), 'job')} failed"
    return AskDialog(title, [], {"": "Close"}, details=[*lines, Text()])


def _body(app: App[Any], rows: Sequence[JobRow], *facts: str, command: str = "", last: str = "") -> list[Text]:
    """Return the jobs, their facts, what happens, and the command for one job."""
    lines = [*(_one(app, rows[0]) if len(rows) == 1 else _several(app, rows)), Text()]
    lines += [Text(fact, "$style-muted") for fact in facts]
    if len(rows) == 1 and command:
        words = f"$ {shlex.join(['torchx-tui', command, plain(rows[0].handle)])}"
        lines.append(Text(cut(words, TEXT_WIDTH, glyphs_of(app).cut), "$style-faint"))
    return [*lines, *([Text(last, "$style-muted")] if last else []), Text()]


def _one(app: App[Any], row: JobRow) -> list[Text]:
    glyphs = glyphs_of(app)
    # Backends count the replicas of an ended job that succeeded. Of past and lost jobs nobody counts any.
    counts = f"{row.running} of {row.wanted} {'succeeded' if row.is_final else 'running'}"
    is_counted = not row.history and row.state is not AppState.UNKNOWN
    facts = {
        "state": state_times_text(row, glyphs, now_of(app)),
        "where": Text(backend_word(row.scheduler, long=True), "$style-text"),
        "replicas": Text(counts if is_counted else f"{row.wanted}", "$style-text"),
    }
    lines = [Text.assemble((f"{label:<11}", "$style-faint"), value) for label, value in facts.items()]
    return [name_text(row.name, TEXT_WIDTH, glyphs, bold=True), Text(), *lines]


def _several(app: App[Any], rows: Sequence[JobRow]) -> list[Text]:
    glyphs = glyphs_of(app)
    lines = []
    for row in rows[:MOST_LISTED]:
        line = state_text(row.state, glyphs)
        line.append(" " * (14 - line.cell_len))
        name = split_name(row.name)[0] if row.varied else row.name
        line.append_text(name_text(name, TEXT_WIDTH - 14, glyphs))
        room = TEXT_WIDTH - line.cell_len - 1
        # Jobs of a sweep differ by their arguments.
        lines.append(
            line.append(f" {cut(row.fit_varied(room), room, glyphs.cut)}" if row.varied else "", "$style-muted")
        )
    return lines + _more(len(rows))


def _more(number: int) -> list[Text]:
    return [Text(f"and {number - MOST_LISTED} more", "$style-faint")] if number > MOST_LISTED else []
