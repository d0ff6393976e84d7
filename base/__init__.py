"""The base library: files, processes, timeouts, back-off, validation, threads. Standard library only."""
