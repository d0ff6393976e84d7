"""Pictures are the same on every machine; an application is started once for all sizes of a picture."""

import asyncio
import difflib
import html
import itertools
import pickle
import re
import time

import pytest
from pytest_textual_snapshot import PseudoApp, PseudoConsole, SVGImageExtension, node_to_report_path
from support.canned import NOW, busy_scheduler
from support.dashboard import make_app, settled
from support.undrawn import nothing_that_cannot_be_drawn as nothing_that_cannot_be_drawn

from torchx_tui.tui import status
from torchx_tui.tui.jobs import screen as jobs_screen


@pytest.fixture(autouse=True)
def frozen(monkeypatch):
    """Freeze what differs between machines: the time zone, the time that passes, and what a slow one leaves out."""
    monkeypatch.setenv("TZ", "UTC")
    ticks = itertools.count()  # records that are made one after the other differ in their times
    monkeypatch.setattr(time, "time", lambda: NOW + next(ticks) / 1e6)
    # How far jobs are comes after seconds: only a picture that waits for it shows it.
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 3600.0)
    # A message in the status line stays until the next one.
    monkeypatch.setattr(status, "STATUS_SECONDS", 3600.0)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def app(tmp_path):
    return make_app(busy_scheduler(tmp_path / "logs"), tmp_path)


def differing_lines(found, svg):
    """Return where two pictures differ, line by line; the text alone where that differs."""
    texts = [re.findall(r"<text.*?</text>", each) for each in (found, svg)]
    words = [[html.unescape(re.sub(r"<.*?>", "", line)) for line in lines] for lines in texts]
    # The name that a picture's parts have tells nothing.
    plain = [re.sub(r"terminal-(?:\d+-)?", "", each).splitlines() for each in (found, svg)]
    before, after = words if words[0] != words[1] else plain
    return "\n".join(difflib.unified_diff(before, after, "expected", "found", lineterm="", n=0))[:4_000]


@pytest.fixture
def snap_compare(snapshot, request):
    """Give what compares an application's pictures with the files, one of each size: the plugin's takes one of a start.

    Differences stand in the plugin's report.
    """
    kept = snapshot.use_extension(SVGImageExtension)

    async def differing(app, run_before, sizes):
        differ = []
        async with app.run_test(size=next(iter(sizes.values()))) as pilot:
            await run_before(pilot)
            for name, size in sizes.items():
                if app.size != size:
                    await pilot.resize_terminal(*size)
                await settled(pilot)
                found, same = is_same(name, svg := app.export_screenshot(title=app.title, simplify=True))
                if not same:
                    differ.append(f"{name or 'the picture'} at {size}:\n{differing_lines(found, svg)}")
        return differ

    def is_same(name, svg):
        same = kept(name=name) == svg
        found = kept.executions[kept.num_executions - 1].final_data
        report = node_to_report_path(request.node)
        console = PseudoApp(PseudoConsole(False, (80, 24)))
        test = (request.node.path, request.node.reportinfo()[1], f"{request.node.name} {name or ''}")
        data = (same, found or "", svg, console, *test, request.node.function.__doc__ or "", "", found is not None)
        report.with_name(f"{report.name}_{name}").write_bytes(pickle.dumps(data))
        return found or "", same

    def compare(app, run_before, sizes=None, terminal_size=(120, 40)):
        differ = asyncio.run(differing(app, run_before, sizes or {None: terminal_size}))
        assert not differ, "\n".join(differ)
        return True

    return compare
