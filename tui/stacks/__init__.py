"""The Stacks screen: where all ranks of a job stand."""
