"""Arguments that hold several values in one text, by the names that components written for TorchX import."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from .checked import named_host
from .dist import experiment_and_run, program_name
from .topology import parse_topology, with_workers_of_host


@dataclass
class StructuredNameArgument:
    """An experiment and a run of it, written `experiment/run`.

    Args:
        experiment_name: The experiment.
        run_name: The run.
    """

    experiment_name: str
    run_name: str

    def __str__(self) -> str:
        return f"{self.experiment_name or ''}/{self.run_name}"

    @staticmethod
    def parse_from(
        name: str, m: str | None = None, script: str | None = None, default_experiment_name: str = "default-experiment"
    ) -> StructuredNameArgument:
        """Parse `experiment/run`, `experiment/`, `/run`, `run` or `/`.

        Args:
            name: The text.
            m: The main module; its last part is the run where the text has none.
            script: The main script, whose name is the run then.
            default_experiment_name: The experiment where the text has none.

        Raises:
            ValueError: Neither module nor script is given, or both.
        """
        if not m and not script:
            raise ValueError("No main module or script specified: give one of them")
        if m and script:
            raise ValueError("Both main module and script set: give one of them")
        _, run = experiment_and_run(name, program_name(script, m))
        return StructuredNameArgument(name[: max(name.find("/"), 0)] or default_experiment_name, run)


@dataclass
class StructuredJArgument:
    """Nodes and workers of each, written `2x8`.

    Args:
        nnodes: The nodes.
        nproc_per_node: The workers on each node.
    """

    nnodes: int
    nproc_per_node: int

    def __str__(self) -> str:
        return f"{self.nnodes}x{self.nproc_per_node}"

    @staticmethod
    def parse_from(h: str, j: str) -> StructuredJArgument:
        """Parse `2x8`, or `2` with a worker for each GPU of the host; other workers than GPUs are warned of.

        Args:
            h: A named resource.
            j: The text.

        Raises:
            ValueError: The text is neither, or the host has no GPU to count.
        """
        topology = parse_topology(with_workers_of_host(j, h))
        gpus = named_host(h).gpu
        if topology.workers != gpus:
            warnings.warn(f"-j {j} starts {topology.workers} workers on each {h}, which has {gpus} GPUs", stacklevel=2)
        return StructuredJArgument(topology.nodes, topology.workers)
