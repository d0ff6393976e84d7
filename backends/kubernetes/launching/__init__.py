"""Launching on clusters with and without Volcano: which objects an app becomes."""
