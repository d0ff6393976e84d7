"""local_docker: apps as containers of a Docker engine, on TorchX's wire format.

Each replica is a container; what belongs together is found by labels, so that TorchX and this program see each other's
apps. Nothing is kept on this machine: what is known of an app is what the engine tells.
"""
