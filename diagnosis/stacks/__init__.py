"""The stacks of all ranks of a job: reading them where the ranks run, and grouping them."""
