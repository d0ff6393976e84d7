"""What the documentation of the local and the Docker scheduler and of image providers names."""

from __future__ import annotations

from interop.documented_names import LOG_ITER, Difference, Documented, Part, not_here

_LOCAL = "torchx_tui.backends.local.scheduler:"
_DOCKER = "torchx_tui.backends.docker.scheduler:"
_API = "torchx_tui.backends.api:"
_SPECS = "torchx_tui.specs:"

_LOCAL_SCHEDULER = (
    Documented("local_cwd", "scheduler", _LOCAL + "LocalScheduler"),
    Documented("torchx.schedulers.local_scheduler", "module", "torchx_tui.backends.local.scheduler"),
    Documented(
        "torchx.schedulers.local_scheduler.LocalScheduler",
        "class",
        _LOCAL + "LocalScheduler",
        "(session_name, image_provider_class, cache_size=100, extra_paths=None)",
        Difference(
            "addition",
            "the current folder is the usual image; where state is kept and how much, how many apps run at once, and "
            "whether signals are answered and ranks can be asked for stacks, can be set",
            adds=(
                "root",
                "max_running",
                "grace_seconds",
                "keep_days",
                "keep_bytes",
                "torchx_log_dirs",
                "handle_signals",
                "insight",
                "helpers",
            ),
            gives_default=("image_provider_class",),
        ),
    ),
    Documented("LocalScheduler.close", "method", _LOCAL + "LocalScheduler.close", "()"),
    Documented("LocalScheduler.describe", "method", _LOCAL + "LocalScheduler.describe", "(app_id)"),
    Documented("LocalScheduler.log_iter", "method", _LOCAL + "LocalScheduler.log_iter", LOG_ITER),
    Documented("LocalScheduler.run_opts", "method", _LOCAL + "LocalScheduler.run_opts", "()"),
    Documented("LocalScheduler.schedule", "method", _LOCAL + "LocalScheduler.schedule", "(dryrun_info)"),
    Documented("exists", "method", _LOCAL + "LocalScheduler.exists", "(app_id)"),
    Documented("submit", "method", _LOCAL + "LocalScheduler.submit"),
    Documented("self.submit_dryrun", "method", _LOCAL + "LocalScheduler.submit_dryrun", "(app, cfg)"),
    Documented("torchx.schedulers.local_scheduler.PopenRequest", "class", _LOCAL + "PopenRequest"),
    Documented("torchx.schedulers.api.DescribeAppResponse", "class", _API + "DescribeAppResponse"),
    Documented("torchx.schedulers.api.Stream", "class", _API + "Stream"),
    Documented("iter[50]", "method", "torchx_tui.backends.shared.file_lines:FileLines.__getitem__"),
    Documented("torchx.specs.api.Role", "class", _SPECS + "Role"),
    Documented("torchx.specs.api.runopts", "class", _SPECS + "runopts"),
    Documented("torchx.specs.api.AppDryRunInfo", "class", _SPECS + "AppDryRunInfo"),
    not_here("AppSpec", "an earlier name of AppDef, in passing"),
)

_DOCKER_SCHEDULER = (
    Documented("local_docker", "scheduler", _DOCKER + "DockerScheduler"),
    Documented("torchx.schedulers.docker_scheduler", "module", "torchx_tui.backends.docker.scheduler"),
    Documented(
        "torchx.schedulers.docker_scheduler.DockerScheduler",
        "class",
        _DOCKER + "DockerScheduler",
        "(session_name)",
        Difference(
            "addition",
            "which engine, and how long a cancelled replica has, can be set",
            adds=("engine", "grace_seconds"),
        ),
    ),
    Documented(
        "DockerScheduler.build_workspace_image",
        "method",
        _DOCKER + "DockerScheduler.build_workspace_image",
        "(img, workspace)",
        Difference(
            "addition", "the run options say whether to pull and to be quiet; nightly has no such method", adds=("cfg",)
        ),
    ),
    Documented("DockerScheduler.describe", "method", _DOCKER + "DockerScheduler.describe", "(app_id)"),
    Documented("DockerScheduler.log_iter", "method", _DOCKER + "DockerScheduler.log_iter", LOG_ITER),
    Documented("DockerScheduler.run_opts", "method", _DOCKER + "DockerScheduler.run_opts", "()"),
    Documented("DockerScheduler.schedule", "method", _DOCKER + "DockerScheduler.schedule", "(dryrun_info)"),
    Documented("torchx.schedulers.docker_scheduler.DockerJob", "class", _DOCKER + "DockerJob"),
)  # fmt: skip

_IMAGES = (
    Documented("torchx.schedulers.local_scheduler.ImageProvider", "class", _LOCAL + "ImageProvider"),
    Documented("ImageProvider.fetch", "abstract method", _LOCAL + "ImageProvider.fetch", "(image)"),
    Documented("ImageProvider.fetch_role", "method", _LOCAL + "ImageProvider.fetch_role", "(role)"),
    Documented("ImageProvider.get_cwd", "method", _LOCAL + "ImageProvider.get_cwd", "(image)"),
    Documented("ImageProvider.get_entrypoint", "method", _LOCAL + "ImageProvider.get_entrypoint", "(img_root, role)"),
    Documented(
        "ImageProvider.get_replica_param",
        "method",
        _LOCAL + "ImageProvider.get_replica_param",
        "(img_root, role, stdout=None, stderr=None, combined=None)",
    ),
    Documented("torchx.schedulers.local_scheduler.ReplicaParam", "class", _LOCAL + "ReplicaParam"),
    Documented("torchx.schedulers.local_scheduler.CWDImageProvider", "class", _LOCAL + "CWDImageProvider", "(cfg)"),
    Documented("CWDImageProvider.fetch", "method", _LOCAL + "CWDImageProvider.fetch", "(image)"),
    Documented("CWDImageProvider.get_cwd", "method", _LOCAL + "CWDImageProvider.get_cwd", "(image)"),
    Documented(
        "CWDImageProvider.get_entrypoint", "method", _LOCAL + "CWDImageProvider.get_entrypoint", "(img_root, role)"
    ),
    Documented("LocalDirectoryImageProvider", "class", _LOCAL + "LocalDirectoryImageProvider"),
    not_here('Image(name="/tmp/foobar")', "in an example only; the signature of fetch takes the image's name"),
    not_here("LocalhostScheduler", "an earlier name of LocalScheduler, in passing"),
)  # fmt: skip

LOCAL_AND_DOCKER = Part(
    "The local scheduler, the Docker scheduler, image providers",
    "early",
    _LOCAL_SCHEDULER + _DOCKER_SCHEDULER + _IMAGES,
)
