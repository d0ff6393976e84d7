"""The table of all jobs."""
