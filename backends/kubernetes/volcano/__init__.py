"""Volcano's jobs: the first kind of jobs that the scheduler knows."""
