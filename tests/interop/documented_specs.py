"""What the documentation of torchx.specs names: apps, resources, macros, run options, statuses, the linter."""

from __future__ import annotations

from interop.documented_names import Difference, Documented, Part, not_here

_SPECS = "torchx_tui.specs:"
_NEWER = "TorchX nightly's fields follow the documented ones"

_APPS = (
    Documented("torchx.specs", "module", "torchx_tui.specs"),
    Documented("torchx.specs.AppDef", "class", _SPECS + "AppDef", "(name, roles=list, metadata=dict)"),
    Documented(
        "torchx.specs.Role",
        "class",
        _SPECS + "Role",
        "(name, image, base_image=None, entrypoint='<MISSING>', args=list, env=dict, num_replicas=1, max_retries=0, "
        "retry_policy=RetryPolicy.APPLICATION, resource=Resource(cpu=-1, gpu=-1, memMB=-1, capabilities={}), "
        "port_map=dict, metadata=dict)",
        Difference(
            "generation",
            _NEWER + "; nightly itself has min_replicas in the place of base_image",
            adds=("min_replicas", "mounts", "workspace", "overrides"),
        ),
    ),
    not_here("torchx.specs.Role: replicas", "the list of parameters calls it so, the signature above it num_replicas"),
    Documented("torchx.specs.Role.pre_proc", "method", _SPECS + "Role.pre_proc", "(scheduler, dryrun_info)"),
    Documented(
        "torchx.specs.RetryPolicy",
        "members",
        _SPECS + "RetryPolicy",
        "REPLICA, APPLICATION='APPLICATION'",
        Difference("generation", "TorchX nightly has ROLE too", adds=("ROLE",)),
    ),
    not_here("torch_dist_role", "a function of an early TorchX, in passing; the component dist.ddp makes such a role"),
    Documented("torchx.specs.api.AppDryRunInfo", "class", _SPECS + "AppDryRunInfo"),
    Documented(
        "session.run",
        "method",
        "torchx_tui.backends.runner:Runner.run",
        "(app, scheduler, cfg)",
        Difference(
            "generation",
            "TorchX nightly calls the session a Runner; its scheduler `local` is local_cwd",
            adds=("workspace", "parent_run_id", "dryrun", "origin", "progress"),
            gives_default=("cfg",),
        ),
    ),
)  # fmt: skip

_RESOURCES = (
    Documented(
        "torchx.specs.Resource",
        "class",
        _SPECS + "Resource",
        "(cpu, gpu, memMB, capabilities=dict)",
        Difference("generation", _NEWER, adds=("devices", "tags")),
    ),
    Documented("torchx.specs.Resource.copy", "static method", _SPECS + "Resource.copy", "(original, **capabilities)"),
    Documented("torchx.specs.get_named_resources", "function", _SPECS + "get_named_resources", "(res)"),
    Documented("torchx.specs.named_resources", "attribute", _SPECS + "named_resources"),
    Documented(
        "[torchx.named_resources]",
        "value",
        "torchx_tui.specs.resource_names:ENTRY_POINT_GROUP",
        "'torchx.named_resources'",
    ),
    Documented("torchx.specs.named_resources_aws", "module", "torchx_tui.specs.named_resources_aws"),
    *(
        Documented(f'named_resources["{name}"]', "named resource", _SPECS + "named_resources", name)
        for name in ("aws_t3.medium", "aws_m5.2xlarge", "aws_p3.2xlarge", "aws_p3.8xlarge")
    ),
)  # fmt: skip

_MACROS = (
    Documented("torchx.specs.macros", "class", _SPECS + "macros"),
    Documented("torchx.specs.macros.img_root", "attribute", _SPECS + "macros.img_root"),
    Documented("torchx.specs.macros.app_id", "value", _SPECS + "macros.app_id", "'${app_id}'"),
    Documented("torchx.specs.macros.replica_id", "attribute", _SPECS + "macros.replica_id"),
    Documented(
        "torchx.specs.macros.Values",
        "class",
        _SPECS + "macros.Values",
        "(img_root, app_id, replica_id, base_img_root='DEPRECATED')",
        Difference("generation", "TorchX nightly has rank0_env, and no base_img_root any more", adds=("rank0_env",)),
    ),
    Documented("torchx.specs.macros.Values.apply", "method", _SPECS + "macros.Values.apply", "(role)"),
    Documented("torchx.specs.macros.Values.substitute", "method", _SPECS + "macros.Values.substitute", "(arg)"),
)

_RUN_OPTIONS = (
    Documented("torchx.specs.runopts", "class", _SPECS + "runopts", "()"),
    Documented(
        "torchx.specs.runopts.add",
        "method",
        _SPECS + "runopts.add",
        "(cfg_key, type_, help, default=None, required=False)",
        Difference(
            "generation",
            "the newest part, the source of torchx.schedulers.api, gives options aliases; the deprecated ones are an "
            "addition",
            adds=("aliases", "deprecated_aliases"),
        ),
    ),
    Documented("torchx.specs.runopts.get", "method", _SPECS + "runopts.get", "(name)"),
    Documented("torchx.specs.runopts.is_type", "static method", _SPECS + "runopts.is_type", "(obj, tp)"),
    Documented(
        "torchx.specs.runopts.resolve",
        "method",
        _SPECS + "runopts.resolve",
        "(cfg)",
        Difference(
            "generation",
            "the mapping that is given is not changed, though the documentation warns that it is: TorchX nightly, too, "
            "returns a new one, and has ignore_unknown",
            adds=("ignore_unknown",),
        ),
    ),
    Documented("opts.check(cfg)", "method", _SPECS + "runopts.check", "(cfg)"),
    Documented("print(opts)", "method", _SPECS + "runopts.__repr__", "()"),
    Documented("torchx.specs.api.runopt", "class", _SPECS + "runopt"),
    not_here(
        "Scheduler.run_config_options",
        "an earlier name, in passing; every signature of the documentation calls it Scheduler.run_opts",
    ),
)

_STATUS = (
    Documented(
        "torchx.specs.AppStatus",
        "class",
        _SPECS + "AppStatus",
        "(state, num_restarts=0, msg='', structured_error_msg='<NONE>', ui_url=None, roles=list)",
    ),
    not_here("torchx.specs.AppStatus: replicas", "the text calls so what the signature above it calls roles"),
    Documented("torchx.specs.api.RoleStatus", "class", _SPECS + "RoleStatus"),
    Documented(
        "torchx.specs.AppState",
        "members",
        _SPECS + "AppState",
        "UNSUBMITTED, SUBMITTED, PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED, UNKNOWN",
    ),
    not_here("AppState.STOPPED", "the text has such a state once; the list below it has none, nor has TorchX"),
    Documented("torchx.specs.ReplicaState", "alias", _SPECS + "ReplicaState", _SPECS + "AppState"),
)  # fmt: skip

_LINTER = (
    Documented("torchx.specs.file_linter", "module", "torchx_tui.components.lint"),
    Documented(
        "torchx.specs.file_linter.validate", "function", "torchx_tui.components:validate", "(path, component_function)"
    ),
    Documented("torchx.specs.file_linter.LinterMessage", "class", "torchx_tui.components:LinterMessage"),
)

SPECS = Part("torchx.specs", "early", _APPS + _RESOURCES + _MACROS + _RUN_OPTIONS + _STATUS + _LINTER)
