"""Why a container could not be created or started, in words, from what the engine answers."""

from __future__ import annotations

import re

from .request import DockerContainer

_NAME_TAKEN = re.compile(r'container name "/?(?P<name>[^"]+)" is already in use by container "?(?P<id>[0-9a-f]{12})')
_PORT = re.compile(r"(?:Bind for |listen \w+ )(?P<port>\S+?:\d+)[: ].*(?:already allocated|already in use)")
_NO_SOURCE = re.compile(r"bind source path does not exist: (?P<path>.+?)\s*$")
_NO_IMAGE = re.compile(r"No such image: (?P<image>\S+)")


def refusal_words(said: str, container: DockerContainer) -> str:
    """Return why a container was not started, with what to do; what the engine said where that is not understood.

    Args:
        said: the engine's answer.
        container: what was to be started.
    """
    command = container.command[0] if container.command else ""
    if "executable file not found" in said or ("exec:" in said and "no such file or directory" in said):
        return f"no such command: {command}: the image {container.image} does not have it"
    if "exec:" in said and "permission denied" in said:
        return f"{command} cannot be run: it is not an executable file in the image {container.image}"
    if "could not select device driver" in said:
        return (
            "there is no GPU runtime on the engine's machine: install the NVIDIA Container Toolkit there, "
            "or ask for gpu=0"
        )
    if found := _NO_IMAGE.search(said):
        return f"there is no image {found['image']}: it could not be pulled, or pulling is off; check its name"
    if found := _NAME_TAKEN.search(said):
        return f"the name {found['name']} is taken by another container: `docker rm {found['id']}` frees it"
    if found := _PORT.search(said):
        return f"port {found['port']} is in use: choose another one"
    if found := _NO_SOURCE.search(said):
        return f"the mount's source {found['path']} does not exist on the engine's machine: create it there"
    if "Range of CPUs" in said:
        return f"{said.rstrip('.')}: ask for fewer"
    if "error gathering device information" in said:
        return f"a device is missing on the engine's machine: {said.rpartition('device information while adding')[2]}"
    return said
