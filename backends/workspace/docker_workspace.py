"""Workspaces that become images of a Docker engine, as TorchX builds them; for Docker and for Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...specs.errors import BackendUnavailableError, InvalidRunConfigException, SchedulerError
from ...specs.roles import AppDef, Role
from ...specs.run_options import CfgVal, runopts
from ..shared.progress import Progress, current_progress
from .build_context import DOCKERFILE, build_context, dockerfile_of
from .mixin import WorkspaceMixin

if TYPE_CHECKING:
    import docker

# Of images that were built here and have no name.
_LOCAL = "sha256:"
# Bytes of the workspace between two words of progress.
_STEP = 4 << 20


class DockerWorkspaceMixin(WorkspaceMixin[Any]):
    """Builds images from workspaces on a Docker engine, and pushes them for backends on other machines.

    A workspace's ``Dockerfile.torchx`` says how its image is built; the build arguments ``IMAGE``, the role's image,
    and ``WORKSPACE``, the workspace's path, are there. Without one, the files are copied into the image's working
    folder. What ``.dockerignore`` names stays at home.

    Args:
        docker_client: the engine that builds and pushes; the one that Docker's command line would use where None.
    """

    LABEL_VERSION = "torchx.pytorch.org/version"
    # A scheduler that names its own base class first does not call `__init__` here.
    _docker_client: docker.DockerClient | None = None

    def __init__(self, *args: Any, docker_client: docker.DockerClient | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._docker_client = docker_client

    def workspace_opts(self) -> runopts:
        """Return the run options that building adds; names and texts are TorchX's."""
        opts = runopts()
        opts.add(
            "image_repo",
            type_=str,
            help="(remote jobs) the image repository to use when pushing patched images, must have push access. "
            "Ex: example.com/your/container",
        )
        opts.add(
            "quiet",
            type_=bool,
            default=False,
            help="whether to suppress verbose output for image building. Defaults to ``False``.",
        )
        return opts

    @contextmanager
    def workspace_engine(self) -> Iterator[docker.DockerClient]:
        """Give a client of the engine that builds, for one task; schedulers that know their engine give its own.

        Raises:
            BackendUnavailableError: there is no engine.
            SchedulerError: the engine refused.
        """
        import docker
        import docker.errors
        import requests

        client: docker.DockerClient | None = None
        try:
            client = self._docker_client or docker.from_env(timeout=None)  # type: ignore[arg-type]
            yield client
        except docker.errors.APIError as error:
            raise SchedulerError(f"the Docker engine refused: {error.explanation or error}") from error
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise BackendUnavailableError(
                f"an image is built from the workspace by a Docker engine, and none can be reached: {error}. "
                "Start one, say where it is with DOCKER_HOST, or leave the workspace out"
            ) from error
        finally:
            if client is not None and client is not self._docker_client:
                client.close()

    # Building

    def build_workspace_image(self, img: str, workspace: str, cfg: Mapping[str, CfgVal] | None = None) -> str:
        """Build an image with the files of a workspace on top of another image; return the new image's id.

        Args:
            img: the image to build on.
            workspace: a folder, or a URL that fsspec can open.
            cfg: the resolved run options.

        Raises:
            LaunchCancelledError: the launch was cancelled.
            SchedulerError: it could not be built; the message has the last lines of the output.
        """
        from ..docker_engine.images import build

        options = cfg or {}
        dockerfile = dockerfile_of(workspace)
        with self.workspace_engine() as client:
            if options.get("pull", True):
                _pull_base(client, img, dockerfile)
            params = {
                "dockerfile": DOCKERFILE,
                "buildargs": json.dumps({"IMAGE": img, "WORKSPACE": workspace}),
                "labels": json.dumps({self.LABEL_VERSION: __version__}),
                "rm": 1,
                "forcerm": 1,
            }
            name = f"the image of {workspace}"
            context = _counted(build_context(workspace), current_progress(), name)
            return build(client, context, params, name=name, quiet=bool(options.get("quiet")))

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Build a workspace on top of ``role.image`` and set ``role.image`` to the result; the engine keeps layers."""
        role.image = self.build_workspace_image(role.image, workspace, cfg)

    # Pushing, for backends that run on other machines

    def dryrun_push_images(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> dict[str, tuple[str, str]]:
        """Give images that exist on the local engine alone a name that other machines can pull them by.

        Args:
            app: its roles' images are changed.
            cfg: the resolved run options; ``image_repo`` is the repository.

        Returns:
            the repository and tag to push each local image to, for `push_images`.

        Raises:
            InvalidRunConfigException: there is such an image, and no ``image_repo``.
        """
        repository = cfg.get("image_repo")
        pushes: dict[str, tuple[str, str]] = {}
        for role in app.roles:
            if not role.image.startswith(_LOCAL):
                continue
            if not repository:
                raise InvalidRunConfigException(
                    f"role {role.name} runs an image that only the local engine has, {role.image:.19}: set image_repo "
                    "to a repository that it can be pushed to",
                    "image_repo",
                    cfg,
                )
            tag = role.image.removeprefix(_LOCAL)
            pushes[role.image] = (str(repository), tag)
            role.image = f"{repository}:{tag}"
        return pushes

    def push_images(self, images_to_push: Mapping[str, tuple[str, str]]) -> None:
        """Push local images as `dryrun_push_images` says.

        Raises:
            LaunchCancelledError: the launch was cancelled.
            SchedulerError: one could not be pushed; the message says why.
        """
        from ..docker_engine.images import push

        if not images_to_push:
            return
        with self.workspace_engine() as client:
            for image, (repository, tag) in images_to_push.items():
                client.api.tag(image, repository, tag)
                push(client, repository, tag)


def _pull_base(client: docker.DockerClient, image: str, dockerfile: bytes) -> None:
    """Pull the image that is built on, where the build asks for it; without it, what is here is built on."""
    from ..docker_engine.images import try_to_pull

    if not image or image.startswith(_LOCAL) or b"IMAGE" not in dockerfile:
        return
    failure = try_to_pull(client, image)
    if failure is not None:
        current_progress().report(f"{image} is used as it is here: {failure}")


def _counted(context: Iterator[bytes], progress: Progress, name: str) -> Iterator[bytes]:
    """Yield the parts of a workspace, and tell how much of it was sent."""
    sent = told = 0
    for part in context:
        sent += len(part)
        if sent - told >= _STEP:
            told = sent
            progress.report(f"sending {name}: {sent / 1e6:,.0f} MB")
        yield part
