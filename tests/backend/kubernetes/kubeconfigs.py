"""Kubeconfigs for tests."""

import json


def write_kubeconfig(path, user, url="http://127.0.0.1:9", **more):
    """Write a kubeconfig of one context, test.

    Args:
        path: the file.
        user: the user's entries, such as a token.
        url: the server's address.
        more: entries of the context, such as a namespace, and under ``cluster`` those of the server.
    """
    cluster = {"server": url, **more.pop("cluster", {})}
    path.write_text(
        json.dumps(
            {
                "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", **more}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return path
