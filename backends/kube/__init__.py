"""A client of Kubernetes' API servers: requests, reflectors, pods and their logs, commands in containers.

It knows Kubernetes' own objects, and no scheduler's. The package `kubernetes` is imported only when a server is asked.
"""
