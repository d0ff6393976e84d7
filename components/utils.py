"""Builtin components that run well-known programs."""

import os
import shlex

from torchx_tui.components.checked import checked_mounts, checked_resource, exactly_one
from torchx_tui.components.image import DEFAULT_IMAGE
from torchx_tui.components.programs import program_text
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import NONE


def echo(msg: str = "hello world", image: str = DEFAULT_IMAGE, num_replicas: int = 1) -> AppDef:
    """Print a message.

    Args:
        msg: message to print
        image: image to use
        num_replicas: number of replicas to run
    """
    return _small_app("echo", image, "echo", [msg], num_replicas)


def touch(file: str, image: str = DEFAULT_IMAGE) -> AppDef:
    """Create an empty file.

    Args:
        file: file to create
        image: image to use
    """
    return _small_app("touch", image, "touch", [file])


def sh(
    *args: str,
    image: str = DEFAULT_IMAGE,
    num_replicas: int = 1,
    cpu: int = 1,
    gpu: int = 0,
    memMB: int = 1024,
    h: str | None = None,
    env: dict[str, str] | None = None,
    max_retries: int = 0,
    mounts: list[str] | None = None,
    entrypoint: str | None = None,
) -> AppDef:
    """Run a command with sh.

    Each argument is quoted, so that sh sees what was typed: no variables, no `;`. For those, run `sh -c '...'`.

    Args:
        args: the command and its arguments
        image: image to use
        num_replicas: number of replicas to run
        cpu: number of cpus per replica
        gpu: number of gpus per replica
        memMB: memory in MB per replica
        h: a named resource, which wins over cpu, gpu and memMB
        env: environment variables (ENV1=v1,ENV2=v2)
        max_retries: the number of scheduler retries allowed
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
        entrypoint: the program to run instead of sh
    """
    quoted = [shlex.quote(arg) for arg in args]
    role = Role(
        name="sh",
        image=image,
        entrypoint="sh" if entrypoint is None else entrypoint,
        args=["-c", " ".join(quoted)] if entrypoint is None else quoted,
        num_replicas=num_replicas,
        resource=checked_resource(cpu, gpu, memMB, h),
        env=_with_log_level(env),
        max_retries=max_retries,
        mounts=checked_mounts(mounts),
    )
    return AppDef(name="sh", roles=[role])


def python(
    *args: str,
    m: str | None = None,
    c: str | None = None,
    script: str | None = None,
    image: str = DEFAULT_IMAGE,
    name: str = "torchx_utils_python",
    cpu: int = 1,
    gpu: int = 0,
    memMB: int = 1024,
    h: str | None = None,
    num_replicas: int = 1,
    mounts: list[str] | None = None,
) -> AppDef:
    """Run a Python module, program text or script.

    Args:
        args: arguments of the program
        m: module to run
        c: program text to run
        script: script to run
        image: image to use
        name: name of the job
        cpu: number of cpus per replica
        gpu: number of gpus per replica
        memMB: memory in MB per replica
        h: a named resource, which wins over cpu, gpu and memMB
        num_replicas: number of replicas to run
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
    """
    exactly_one(m=m, c=c, script=script)
    what = ["-m", m] if m is not None else ["-c", c] if c is not None else [script]
    role = Role(
        name="python",
        image=image,
        entrypoint="python",
        args=[*(part for part in what if part is not None), *args],
        num_replicas=num_replicas,
        resource=checked_resource(cpu, gpu, memMB, h),
        env={"HYDRA_MAIN_MODULE": m} if m else {},
        mounts=checked_mounts(mounts),
    )
    return AppDef(name=name, roles=[role])


def binary(
    *args: str,
    entrypoint: str,
    name: str = "torchx_utils_binary",
    num_replicas: int = 1,
    cpu: int = 1,
    gpu: int = 0,
    memMB: int = 1024,
    h: str | None = None,
) -> AppDef:
    """Run a program of the machine, without an image.

    Args:
        args: arguments of the program
        entrypoint: the program
        name: name of the job
        num_replicas: number of replicas to run
        cpu: number of cpus per replica
        gpu: number of gpus per replica
        memMB: memory in MB per replica
        h: a named resource, which wins over cpu, gpu and memMB
    """
    role = Role(
        name="binary",
        image=NONE,
        entrypoint=entrypoint,
        args=list(args),
        num_replicas=num_replicas,
        resource=checked_resource(cpu, gpu, memMB, h),
    )
    return AppDef(name=name, roles=[role])


def copy(src: str, dst: str, image: str = DEFAULT_IMAGE, mounts: list[str] | None = None) -> AppDef:
    """Copy one file between places that fsspec knows.

    Args:
        src: the file to read, a path or a URL such as s3://bucket/file
        dst: the file to write, a path or a URL
        image: image to use; one with fsspec for URLs
        mounts: what to mount (type=bind,src=/host,dst=/job,readonly)
    """
    args = ["-c", program_text("copy.py"), "--src", src, "--dst", dst]
    app = _small_app("torchx-utils-copy", image, "python3", args)
    app.roles[0].mounts = checked_mounts(mounts)
    return app


def booth(
    x1: float,
    x2: float,
    trial_idx: int = 0,
    tracker_base: str = "/tmp/torchx-util-booth",  # noqa: S108 - TorchX's default
    image: str = DEFAULT_IMAGE,
) -> AppDef:
    """Evaluate the Booth function, a test of hyperparameter search.

    Args:
        x1: the first coordinate
        x2: the second coordinate
        trial_idx: number of the trial, which names the result's file
        tracker_base: folder or URL that results go to
        image: image to use
    """
    args = ["-c", program_text("booth.py"), "--x1", str(x1), "--x2", str(x2)]
    args += ["--trial_idx", str(trial_idx), "--tracker_base", tracker_base]
    return _small_app("torchx-utils-booth", image, "python3", args)


def _small_app(name: str, image: str, entrypoint: str, args: list[str], num_replicas: int = 1) -> AppDef:
    role = Role(
        name=name,
        image=image,
        entrypoint=entrypoint,
        args=args,
        num_replicas=num_replicas,
        resource=Resource(cpu=1, gpu=0, memMB=1024),
    )
    return AppDef(name=name, roles=[role])


def _with_log_level(env: dict[str, str] | None) -> dict[str, str]:
    return {"LOGLEVEL": os.environ.get("LOGLEVEL", "WARNING"), **(env or {})}
