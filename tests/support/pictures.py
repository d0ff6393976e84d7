"""What pictures of the screens have in common: sizes, jobs, and how to come to the screen."""

from support.dashboard import until

from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.logs.search import LogSearch
from torchx_tui.tui.logs.view import LogView

# The largest first: the application is started at it and made smaller.
SIZES = {"120x40": (120, 40), "80x24": (80, 24)}
FAILED = "local_cwd://torchx/llama3-8b-sft-b7n1xk4t9wz0rg"
RUNNING = "local_cwd://torchx/llama3-8b-sft-zq2wmx7v5hkdfd"


def at_job(handle, *keys, wait=None):
    """Return what to do before a picture: wait for the row, put the cursor on a job, press keys, wait again."""

    async def run_before(pilot):
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and has_row(app.screen, handle), "its row")
        screen = app.screen
        screen.table.move_to(handle)
        app_id = handle.rpartition("/")[2]
        await until(pilot, lambda: screen.described is not None and screen.described.app_id == app_id, "its words")
        await until(pilot, lambda: shows_logs(app), "the log")
        await until(pilot, lambda: _card_is_read(screen.card, handle), "the chart of the card")
        for key in keys:
            await pilot.press(key)
        if wait is not None:
            shown = wait
            await until(pilot, lambda: shown(app), "the screen")

    return run_before


def has_row(screen, handle):
    """Whether a job is in the table: of several backends another one may have answered before its own."""
    return any(row.handle == handle for row in screen.table.rows)


def _card_is_read(card, handle):
    """Whether the card has read the log for its chart, if there is room for one."""
    activity = card.app.feed.activity(handle)
    return not card.has_class("-large") or (activity is not None and activity.is_read)


def shows_logs(app):
    status, view = app.screen.logs.log_pane.status, app.screen.logs.query_one(LogView)
    return status.line_count > 0 and status.exact and view.last_line is not None


def stands_at_cause(app):
    """Whether the log of a failed job is read, and stands at the error that it ended of."""
    return shows_logs(app) and app.screen.query_one(LogSearch).current is not None
