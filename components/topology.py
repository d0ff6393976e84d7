"""The numbers of nodes and of workers on each: the argument `j` of distributed components."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..specs.errors import ArgumentError
from .checked import named_host

_TOPOLOGY = re.compile(r"(?:(?:(?P<fewest>\d+):)?(?P<nodes>\d+)x)?(?P<workers>\d+)", re.ASCII)
WANTED = "use NODESxWORKERS, such as 2x8, or FEWEST:MOSTxWORKERS, such as 1:4x8"


@dataclass(frozen=True)
class Topology:
    """Nodes and workers.

    Args:
        fewest: The fewest nodes that an elastic job runs with; `nodes` where it is not elastic.
        nodes: The most nodes.
        workers: The worker processes on each node.
        nodes_text: The nodes as torchrun's `--nnodes` wants them: `2` or `1:4`.
    """

    fewest: int
    nodes: int
    workers: int
    nodes_text: str


def parse_topology(j: str) -> Topology:
    """Parse `2x8`, `1:4x8`, or `8`, which is one node.

    Raises:
        ArgumentError: The text is none of these, a number is 0, or the fewest nodes are more than the most.
    """
    match = _TOPOLOGY.fullmatch(j)
    if match is None:
        raise ArgumentError("j", f"`{j}`: {WANTED}")
    nodes_text = match["nodes"] or "1"
    nodes, workers = int(nodes_text), int(match["workers"])
    fewest = int(match["fewest"] or nodes)
    if match["fewest"]:
        nodes_text = f"{match['fewest']}:{nodes_text}"
    if fewest < 1 or nodes < 1 or workers < 1:
        raise ArgumentError("j", f"`{j}`: nodes and workers are at least 1: {WANTED}")
    if fewest > nodes:
        raise ArgumentError("j", f"`{j}`: the fewest nodes, {fewest}, are more than the most, {nodes}: {WANTED}")
    return Topology(fewest, nodes, workers, nodes_text)


def with_workers_of_host(j: str, h: str) -> str:
    """Complete `j`, if it is a number of nodes only, with one worker for each GPU of the host.

    Args:
        j: As for `parse_topology`; a bare number is nodes.
        h: A named resource.

    Raises:
        ArgumentError: The host is unknown, or has no GPU to count.
    """
    if not re.fullmatch(r"\d+", j, re.ASCII):
        return j
    gpus = named_host(h).gpu
    if gpus < 1:
        why = f"nproc_per_node cannot be inferred from GPU count. `{h}` is not a GPU instance."
        raise ArgumentError("j", f"`{j}`: {why} Use {j}xWORKERS, such as {j}x8")
    return f"{j}x{gpus}"
