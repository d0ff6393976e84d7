"""What is shown of a log: an index of its lines, several replicas merged, filters, searches."""
