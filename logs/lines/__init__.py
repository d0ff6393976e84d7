"""Views of logs: a line index, several replicas merged, filters and searches."""
