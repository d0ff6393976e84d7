"""What a job is doing, and why not: evidence from its logs and its processes, as sentences."""
