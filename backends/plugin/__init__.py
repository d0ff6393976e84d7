"""Schedulers that are written against TorchX's classes, behind the contract of this program.

TorchX is imported when such a scheduler is made, not before: to find them costs no import.
"""
