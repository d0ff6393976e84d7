"""Files that store what was read from a stream, so that it is fetched once and can be read like a file."""
