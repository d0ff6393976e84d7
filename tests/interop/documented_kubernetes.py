"""What the documentation of the Kubernetes scheduler names."""

from __future__ import annotations

from interop.documented_names import LOG_ITER, Difference, Documented, Part, not_here

_KUBERNETES = "torchx_tui.backends.kubernetes.scheduler:"
_SCHEDULER = _KUBERNETES + "KubernetesScheduler"
_WORKSPACE = "torchx_tui.backends.workspace.docker_workspace:DockerWorkspaceMixin"
_SPECS = "torchx_tui.specs:"
_RESERVED = ("reserved_millicpu", "reserved_memmb", "efa_device_count")

_NAMES = (
    Documented("torchx.schedulers.kubernetes_scheduler", "module", "torchx_tui.backends.kubernetes.scheduler"),
    Documented("kubernetes", "scheduler", _SCHEDULER),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.KubernetesScheduler",
        "class",
        _SCHEDULER,
        "(session_name, client=None, docker_client=None)",
        Difference(
            "addition",
            "which context and namespace is looked at, and how long the server may take, can be set",
            adds=("context", "namespace", "all_namespaces", "timeout"),
        ),
    ),
    Documented("Bases: Scheduler[KubernetesOpts]", "base class", _SCHEDULER, "torchx_tui.backends.api:Scheduler"),
    Documented(
        "Bases: DockerWorkspace",
        "base class",
        _SCHEDULER,
        _WORKSPACE,
        Difference("generation", "DockerWorkspaceMixin is TorchX nightly's name of it"),
    ),
    Documented("KubernetesOpts", "class", _KUBERNETES + "KubernetesOpts"),
    Documented(
        "torchx run --scheduler kubernetes --scheduler_args namespace=default,queue=test "
        "utils.echo --image alpine:latest --msg hello",
        "command",
        "torchx_tui.cli.main:build_parser",
    ),
    Documented("torchx status kubernetes://torchx_user/1234", "command", "torchx_tui.cli.main:build_parser"),
    Documented("utils.echo --image --msg", "component", "torchx_tui.components.utils:echo", "image, msg"),
    Documented("torchx.components.dist", "module", "torchx_tui.components.dist"),
    not_here("pip install torchx[kubernetes]", "the client of Kubernetes is installed with the program"),
)  # fmt: skip

_RUN_OPTIONS = (
    Documented("queue", "run option", _KUBERNETES + "create_scheduler", "str, required"),
    Documented("namespace", "run option", _KUBERNETES + "create_scheduler", "str, 'default'"),
    Documented("image_repo", "run option", _KUBERNETES + "create_scheduler", "str, None"),
    Documented("service_account", "run option", _KUBERNETES + "create_scheduler", "str, None"),
    Documented("priority_class", "run option", _KUBERNETES + "create_scheduler", "str, None"),
)

_MOUNTS = (
    Documented("torchx.specs.parse_mounts", "function", _SPECS + "parse_mounts"),
    Documented(
        "type=bind,src=<host path>,dst=<container path>[,readonly]",
        "mount",
        _SPECS + "BindMount",
        "type=bind,src=/data,dst=/in type=bind,src=/data,dst=/in,readonly",
    ),
    Documented(
        "type=volume,src=<claim>,dst=<container path>[,readonly]",
        "mount",
        _SPECS + "VolumeMount",
        "type=volume,src=claim,dst=/in type=volume,src=claim,dst=/in,readonly",
    ),
    Documented(
        "type=device,src=/dev/foo[,dst=<container path>][,perm=rwm]",
        "mount",
        _SPECS + "DeviceMount",
        "type=device,src=/dev/foo type=device,src=/dev/foo,dst=/dev/bar,perm=rwm",
    ),
    Documented(
        "specs.Resource",
        "class",
        _SPECS + "Resource",
        "(cpu, gpu, memMB, capabilities=dict)",
        Difference("generation", "TorchX nightly's fields follow the documented ones", adds=("devices", "tags")),
    ),
    Documented(
        "node.kubernetes.io/instance-type",
        "value",
        "torchx_tui.specs.named_resources_aws:INSTANCE_TYPE",
        "'node.kubernetes.io/instance-type'",
    ),
)

_REFERENCE = (
    Documented("KubernetesScheduler.describe", "method", _SCHEDULER + ".describe", "(app_id)"),
    Documented("KubernetesScheduler.log_iter", "method", _SCHEDULER + ".log_iter", LOG_ITER),
    not_here("iter[50]", "what some schedulers may support; here local_cwd does, since its logs are files"),
    Documented("KubernetesScheduler.run_opts", "method", _SCHEDULER + ".run_opts", "()"),
    Documented("KubernetesScheduler.schedule", "method", _SCHEDULER + ".schedule", "(dryrun_info)"),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.KubernetesJob",
        "class",
        _KUBERNETES + "KubernetesJob",
        "(images_to_push, resource)",
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.create_scheduler",
        "function",
        _KUBERNETES + "create_scheduler",
        "(session_name, **kwargs)",
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.app_to_resource",
        "function",
        _KUBERNETES + "app_to_resource",
        "(app, queue, service_account, priority_class=None)",
        Difference("generation", "TorchX nightly's parameters follow", adds=_RESERVED),
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.cleanup_str",
        "function",
        _KUBERNETES + "cleanup_str",
        "(data)",
        Difference("generation", "TorchX nightly has normalize_str instead, which keeps `-`; both are here"),
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.pod_labels",
        "function",
        _KUBERNETES + "pod_labels",
        "(app, role_idx, role, replica_id)",
        Difference("generation", "TorchX nightly has app_id, which is required there", adds=("app_id",)),
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.role_to_pod",
        "function",
        _KUBERNETES + "role_to_pod",
        "(name, role, service_account)",
        Difference("generation", "TorchX nightly's parameters follow", adds=_RESERVED),
    ),
    Documented(
        "torchx.schedulers.kubernetes_scheduler.sanitize_for_serialization",
        "function",
        _KUBERNETES + "sanitize_for_serialization",
        "(obj)",
    ),
    not_here("AppSpec", "an earlier name of AppDef, in passing"),
)

KUBERNETES = Part("The Kubernetes scheduler", "middle", _NAMES + _RUN_OPTIONS + _MOUNTS + _REFERENCE)
