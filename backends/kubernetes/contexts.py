"""The contexts of the kubeconfig, and which of them is current; read without the package `kubernetes`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...specs.files import read_file

# What a pod's own service account gives to the programs in it.
_IN_CLUSTER = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True)
class Contexts:
    """What the kubeconfig offers.

    Args:
        names: the contexts, in the order of the files.
        current: the current one; empty where none is.
        namespaces: the default namespace of contexts that have one.
    """

    names: tuple[str, ...]
    current: str
    namespaces: Mapping[str, str]


def kubeconfig_files() -> list[Path]:
    """Return the files of the kubeconfig that exist; ``KUBECONFIG`` names several with colons between them."""
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"
    # Path.expanduser raises where there is no home folder.
    paths = [Path(os.path.expanduser(part)) for part in named.split(os.pathsep) if part]  # noqa: PTH111
    return [path for path in paths if path.is_file()]


def in_cluster() -> bool:
    """Tell whether this program runs in a pod that may speak to its API server."""
    return all(os.environ.get(name) for name in _IN_CLUSTER) and _TOKEN.is_file()


def is_set_up() -> bool:
    """Tell whether there is a server that could be asked."""
    return in_cluster() or bool(kubeconfig_files())


def read_contexts() -> Contexts:
    """Return the contexts of the kubeconfig, none where there is no file.

    Raises:
        ValueError: a file is no kubeconfig.
    """
    import yaml

    names: list[str] = []
    namespaces: dict[str, str] = {}
    current = ""
    for path in kubeconfig_files():
        try:
            found = yaml.safe_load(read_file(path)) or {}
            listed = found.get("contexts") or []
            for one in listed:
                if one["name"] not in names:
                    names.append(one["name"])
                    if namespace := (one.get("context") or {}).get("namespace"):
                        namespaces[one["name"]] = namespace
            current = current or found.get("current-context") or ""
        except (OSError, RecursionError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no kubeconfig: {error}") from error
    return Contexts(tuple(names), current, namespaces)
