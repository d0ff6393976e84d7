"""The contexts of the kubeconfig, and which of them is current; read without the package `kubernetes`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    """List the contexts of the kubeconfig, none where there is no file.

    Raises:
        ValueError: a file is no kubeconfig.
    """
    names: list[str] = []
    namespaces: dict[str, str] = {}
    current = ""
    for path, config in _read_files():
        try:
            for context in config.get("contexts") or []:
                name = context["name"]
                if name not in names:
                    names.append(name)
                    if namespace := (context.get("context") or {}).get("namespace"):
                        namespaces[name] = namespace
            current = current or config.get("current-context") or ""
        except (AttributeError, KeyError, TypeError) as error:
            raise _not_a_kubeconfig(path, error) from error
    return Contexts(tuple(names), current, namespaces)


@dataclass(frozen=True)
class Login:
    """Which server a context leads to, and as whom.

    Args:
        cluster: the cluster's entry.
        user: the user's entry, empty where the context has none.
        folder: the folder of the file that the cluster stands in, from which relative paths begin.
    """

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    folder: Path


def read_login(context: str) -> Login | None:
    """Read the cluster and the user of a context; None where the context, or its cluster, is not there.

    Raises:
        ValueError: a file is no kubeconfig.
    """
    entries: dict[str, dict[str, tuple[Any, Path]]] = {"contexts": {}, "clusters": {}, "users": {}}
    for path, config in _read_files():
        try:
            for kind, named in entries.items():
                for entry in config.get(kind) or []:
                    # As kubectl does it: the first one of a name is taken.
                    named.setdefault(entry["name"], (entry.get(kind.removesuffix("s")) or {}, path.parent.absolute()))
        except (AttributeError, KeyError, TypeError) as error:
            raise _not_a_kubeconfig(path, error) from error
    settings = entries["contexts"][context][0] if context in entries["contexts"] else None
    if not isinstance(settings, dict) or settings.get("cluster") not in entries["clusters"]:
        return None
    cluster, folder = entries["clusters"][settings["cluster"]]
    user, _ = entries["users"].get(str(settings.get("user")), ({}, folder))
    if not isinstance(cluster, dict) or not isinstance(user, dict):
        return None
    return Login(cluster, user, folder)


def _read_files() -> Iterator[tuple[Path, dict[str, Any]]]:
    import yaml

    for path in kubeconfig_files():
        try:
            config = yaml.safe_load(read_file(path)) or {}
        except (OSError, RecursionError, yaml.YAMLError) as error:
            raise _not_a_kubeconfig(path, error) from error
        yield path, config


def _not_a_kubeconfig(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is no kubeconfig: {error}")
