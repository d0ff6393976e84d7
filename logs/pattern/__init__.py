"""Searching bytes for a literal text or a regular expression, as fast as grep."""
