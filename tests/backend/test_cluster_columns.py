"""The columns of pools and nodes, for the shell and the screen."""

import pytest
from backend.tables import TABLES

from torchx_tui.backends.shared.cluster_columns import has_room, node_table, pool_table
from torchx_tui.backends.types import ClusterNode, ClusterPool, ClusterStatus, pool_of


def test_columns_without_a_text_are_left_out():
    table = pool_table(ClusterStatus([ClusterPool("q", "queue", cpus=8, cpus_free=2), ClusterPool("r", "queue")]))
    assert (table.labels, table.rows) == (["QUEUE", "CPUS"], [("q", " 2/8"), ("r", "    ")])
    assert pool_table(ClusterStatus()).rows == []


def test_texts_of_a_backend_are_made_safe():
    (row,) = node_table([ClusterNode("n\x1b[2J1", reason="bad\nfan\x9b31m", users=("\x1b]0;x\x07eve",))]).rows
    assert row == ("n1", "bad fan", "eve")


@pytest.mark.parametrize(("counts", "is_free"), TABLES["cluster_columns"]["room"])
def test_what_has_room(counts, is_free):
    assert has_room(ClusterNode("n", **counts)) == is_free
    assert not has_room(ClusterPool("p", **counts, is_open=False))


def test_a_pool_has_the_sums_of_its_nodes():
    nodes = [
        ClusterNode("n1", cpus=4, cpus_free=4, gpus={"a": (2, 2)}),
        ClusterNode("n2", cpus=4, cpus_free=1, gpus={"a": (0, 2), "b": (1, 1)}),
        ClusterNode("n3", cpus=4, is_usable=False, gpus={"a": (0, 2)}),
        ClusterNode("n4", cpus=4),
    ]
    pool = pool_of("p", nodes)
    assert (pool.nodes, pool.nodes_free, pool.nodes_mixed, pool.nodes_down) == (4, 1, 1, 1)
    assert (pool.cpus_free, pool.cpus, pool.gpus) == (5, 16, {"a": (2, 6), "b": (1, 1)})
