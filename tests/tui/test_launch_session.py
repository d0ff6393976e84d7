"""The state of a launch form without its widgets: partitions, workspaces, failures."""

import asyncio
import threading

import pytest
from support.launching import ShippingScheduler
from support.waiting import PATIENCE

from torchx_tui.backends.api import WorkspaceListing
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import PartitionStatus
from torchx_tui.components.finder import describe
from torchx_tui.settings.config import Settings
from torchx_tui.tui.launch.session import LaunchSession, Start


class Estimating(ShippingScheduler):
    """Suggests a partition, and counts how often it is asked."""

    asked = 0

    def partitions(self, app, cfg):
        self.asked += 1
        return [PartitionStatus({}, "main", 1, 1)]


@pytest.fixture
def scheduler():
    return Estimating()


@pytest.fixture
def runner(scheduler, tmp_path):
    return Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": scheduler})


@pytest.fixture
async def session(runner):
    made = LaunchSession(runner, Settings(), Start(), describe("utils.echo"))
    await made.load("local_cwd", first=True)
    made.changed()
    return made


async def test_partitions_are_asked_once_for_each_form(session, scheduler):
    for _ in range(2):
        await session.find_partitions()
    assert (scheduler.asked, [one.name for one in session.partitions.partitions]) == (1, ["main"])
    session.model.set("argument", "msg", "other")
    session.changed()
    assert session.partitions is None
    await session.find_partitions()
    assert scheduler.asked == 2


async def test_partitions_of_a_wrong_form_are_not_asked(session, scheduler):
    session.config_fault = "broken"
    session.changed()
    await session.find_partitions()
    assert (scheduler.asked, session.note) == (0, "broken")


async def test_late_listing_of_another_workspace_is_dropped(session, runner, monkeypatch):
    started, goes_on = threading.Event(), threading.Event()

    def list_slowly(workspace, is_wanted):
        started.set()
        assert goes_on.wait(PATIENCE)
        return WorkspaceListing([("first", 1)])

    monkeypatch.setattr(runner, "list_workspace", list_slowly)
    session.model.set("launch", "workspace", "first")
    assert session.takes_other_workspace()
    listing = asyncio.create_task(session.list_workspace())
    await asyncio.to_thread(started.wait, PATIENCE)
    session.model.set("launch", "workspace", "second")
    assert session.takes_other_workspace()
    goes_on.set()
    await listing
    assert (session.workspace, session.listing) == ("second", None)


async def test_cancelled_listing_is_told_so(session, runner, monkeypatch):
    started, ended = threading.Event(), threading.Event()

    def list_until_cancelled(workspace, is_wanted):
        started.set()
        while is_wanted():
            ended.wait(0.01)
        ended.set()
        return WorkspaceListing([])

    monkeypatch.setattr(runner, "list_workspace", list_until_cancelled)
    session.model.set("launch", "workspace", "folder")
    session.takes_other_workspace()
    listing = asyncio.create_task(session.list_workspace())
    await asyncio.to_thread(started.wait, PATIENCE)
    listing.cancel()
    assert await asyncio.to_thread(ended.wait, PATIENCE)
