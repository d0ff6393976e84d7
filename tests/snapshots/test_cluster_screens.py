"""Pictures of the Cluster screen: partitions with limits, the nodes of one, and without colours."""

import pytest
from support.canned import NOW
from support.cluster import EstimatingCluster, busy_cluster
from support.dashboard import make_app
from support.pictures import SIZES
from support.screens import table_of

from torchx_tui.settings.config import Settings
from torchx_tui.tui.cluster.screen import ClusterScreen
from torchx_tui.tui.ui.row_table import RowTable


def shown(*keys):
    async def run_before(pilot):
        table = await table_of(pilot)
        await table.until(lambda: table.app.jobs.made, "the backend")
        cluster = await table.open(ClusterScreen, "C")
        await table.until(lambda: cluster.query_one(RowTable).row_count, "the rows")
        await table.press(*keys, shows="job of one task would", on="drawn")

    return run_before


@pytest.mark.parametrize("keys", [(), ("enter",)], ids=["pools", "nodes"])
def test_cluster(snap_compare, tmp_path, keys):
    app = make_app(EstimatingCluster(busy_cluster(), NOW), tmp_path, name="slurm")
    assert snap_compare(app, sizes={"200x50": (200, 50), **SIZES}, run_before=shown(*keys))


def test_cluster_no_color_ascii(snap_compare, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(EstimatingCluster(busy_cluster(), NOW), tmp_path, name="slurm", settings=Settings(ascii=True))
    assert snap_compare(app, terminal_size=(80, 24), run_before=shown("j"))
