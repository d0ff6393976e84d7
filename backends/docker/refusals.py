"""Why an engine did not start a container."""

from __future__ import annotations

import re

from .request import DockerContainer

# Patterns of an engine's answers, and what each means; groups, `command` and `image` are filled in.
_REASONS = [
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"executable file not found|exec:(?s:.)*no such file or directory",
         "no such command: {command}: the image {image} does not have it{hint}"),
        (r"exec:(?s:.)*permission denied",
         "{command} cannot be run: it is not an executable file in the image {image}"),
        (r"could not select device driver",
         "there is no GPU runtime on the engine's machine: install the NVIDIA Container Toolkit there, or ask for "
         "gpu=0"),
        (r"No such image: (?P<missing>\S+)",
         "there is no image {missing}: it could not be pulled, or pulling is off; check its name"),
        (r'container name "/?(?P<name>[^"]+)" is already in use by container "?(?P<id>[0-9a-f]{12})',
         "the name {name} is taken by another container: `docker rm {id}` frees it"),
        (r"(?:Bind for |listen \w+ )(?P<port>\S+?:\d+)[: ].*(?:already allocated|already in use)",
         "port {port} is in use: choose another one"),
        (r"bind source path does not exist: (?P<path>.+?)\s*$",
         "the mount's source {path} does not exist on the engine's machine: create it there"),
        (r"(?P<range>.*Range of CPUs.*?)\.?$", "{range}: ask for fewer"),
        (r"error gathering device information while adding(?P<device>.*)",
         "a device is missing on the engine's machine: {device}"),
    )
]  # fmt: skip


def explain_refusal(answer: str, container: DockerContainer) -> str:
    """Explain why a container was not started, and what to do; unknown answers are returned unchanged."""
    command = container.command[0] if container.command else "the image's own"
    for pattern, reason in _REASONS:
        if match := pattern.search(answer):
            hint = "; it may have python3: change the role's entrypoint" if command == "python" else ""
            return reason.format(command=command, image=container.image, hint=hint, **match.groupdict())
    return answer
