"""The scheduler kubernetes: Volcano jobs of an API server.

Modules beside the scheduler have one subject each; the package `kubernetes` is imported only when a server is asked.
"""
