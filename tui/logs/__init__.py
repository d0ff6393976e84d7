"""A job's logs on screen: follow, search, filter, select, copy, save."""
