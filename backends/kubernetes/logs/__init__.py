"""The logs of a job's pods."""
