"""What the dashboard knows of jobs: the threads that ask the backends, and the rows that they keep."""
