"""The run options of local_docker."""

from __future__ import annotations

from dataclasses import dataclass

from ..structured_opts import StructuredOpts


@dataclass
class DockerOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts local_docker` prints them; `pull` is ours."""

    copy_env: list[str] | None = None
    """List of glob patterns of environment variables to copy if not set in AppDef. Ex: FOO_*"""

    env: dict[str, str] | None = None
    """Environment variables to be passed to the run. The separator sign can be either comma or semicolon (e.g. ENV1:v1,ENV2:v2,ENV3:v3 or ENV1:V1;ENV2:V2). Environment variables from env will be applied on top of the ones from copy_env."""  # noqa: E501

    privileged: bool = False
    """If true runs the container with elevated permissions. Equivalent to running with `docker run --privileged`."""

    pull: bool = True
    """If true pulls images before the launch; one that cannot be pulled is taken as it is on the engine's machine."""
