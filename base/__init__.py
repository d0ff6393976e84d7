"""What every room needs: files, processes, timeouts, back-off, validation, threads. Standard library only."""
