"""Kinds of jobs that this program shows, explains and ends, beside Volcano's."""
