"""Objects as plain data: what the package `kubernetes` has models for, as the server takes it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


def sanitize_for_serialization(obj: object) -> Any:
    """Return an object as the JSON that an API server takes.

    Args:
        obj: plain data, with models of the package `kubernetes`, such as ``V1Pod``, anywhere within it.
    """
    if obj is None or isinstance(obj, (str, int, float, bool)):
        return obj
    if isinstance(obj, Mapping):
        return {str(key): sanitize_for_serialization(value) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [sanitize_for_serialization(value) for value in obj]
    return _client().sanitize_for_serialization(obj)


@cache
def _client() -> Any:
    from kubernetes.client import ApiClient

    return ApiClient()
