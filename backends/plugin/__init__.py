"""Schedulers of other packages in a process each: those written for TorchX, and those that ask for one.

TorchX is imported in that process alone.
"""
