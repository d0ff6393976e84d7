"""What the source of torchx.schedulers.api, which is part of the documentation, names: the newest generation."""

from __future__ import annotations

from interop.documented_names import LOG_ITER, Difference, Documented, Part, not_here

_API = "torchx_tui.backends.api:"
_SPECS = "torchx_tui.specs:"
_OPTIONS = _API + "StructuredOpts."
_SCHEDULER = _API + "Scheduler."
_RUNNER = "torchx_tui.backends.runner:Runner."
_WORKSPACE = "torchx_tui.backends.workspace:WorkspaceMixin"

_USED = (
    Documented("torchx.schedulers.api", "module", "torchx_tui.backends.api"),
    *(
        Documented(f"torchx.specs.{name}", "class", _SPECS + name)
        for name in ("AppDef", "AppDryRunInfo", "AppState", "Role", "RoleStatus", "runopts", "Workspace")
    ),
    Documented("torchx.specs.CfgVal", "attribute", _SPECS + "CfgVal"),
    Documented("torchx.specs.NONE", "value", _SPECS + "NONE", "'<NONE>'"),
    Documented("torchx.specs.NULL_RESOURCE", "attribute", _SPECS + "NULL_RESOURCE"),
    Documented("torchx.workspace.WorkspaceMixin", "class", _WORKSPACE),
    Documented("WorkspaceMixin.workspace_opts", "method", _WORKSPACE + ".workspace_opts", "()"),
    Documented("WorkspaceMixin.build_workspaces", "method", _WORKSPACE + ".build_workspaces", "(roles, cfg)"),
    Documented("Workspace.from_str", "static method", _SPECS + "Workspace.from_str", "(workspace)"),
    Documented("Role.image", "attribute", _SPECS + "Role.image"),
    Documented("Role.resource", "attribute", _SPECS + "Role.resource"),
    Documented("Role.workspace", "attribute", _SPECS + "Role.workspace"),
    Documented("Role.pre_proc", "method", _SPECS + "Role.pre_proc", "(scheduler, dryrun_info)"),
    Documented("AppDef.roles", "attribute", _SPECS + "AppDef.roles"),
    Documented("AppDryRunInfo._app", "attribute", _SPECS + "AppDryRunInfo._app"),
    Documented("AppDryRunInfo._cfg", "attribute", _SPECS + "AppDryRunInfo._cfg"),
    Documented("runopts.update", "method", _SPECS + "runopts.update", "(other)"),
    Documented(
        "runopts.resolve",
        "method",
        _SPECS + "runopts.resolve",
        "(cfg)",
        Difference("generation", "TorchX nightly has it", adds=("ignore_unknown",)),
    ),
    Documented(
        "runopts.add",
        "method",
        _SPECS + "runopts.add",
        "(cfg_key, type_, help, default=None, required=False, *, aliases=None)",
        Difference("addition", "further names that are not advertised any more", adds=("deprecated_aliases",)),
    ),
    Documented("DAYS_IN_2_WEEKS", "value", _API + "DAYS_IN_2_WEEKS", "14"),
    Documented("T", "attribute", _API + "T"),
    not_here("_CfgValType", "a private type variable; StructuredOpts.get gives back whatever type its default has"),
    not_here("AWS Batch, SLURM", "schedulers that are named as examples, in passing"),
)

_FIELDS_ONLY = Difference(
    "upstream fault", "only fields are options, as in TorchX nightly; in this source every attribute is, methods too"
)

_STRUCTURED_OPTIONS = (
    Documented("StructuredOpts", "class", _API + "StructuredOpts"),
    Documented("StructuredOpts.snake_to_camel", "static method", _OPTIONS + "snake_to_camel", "(name)"),
    Documented("StructuredOpts.from_cfg", "class method", _OPTIONS + "from_cfg", "(cfg)"),
    Documented("StructuredOpts.get", "method", _OPTIONS + "get", "(key, default=None)", _FIELDS_ONLY),
    Documented("StructuredOpts.__getitem__", "method", _OPTIONS + "__getitem__", "(key)", _FIELDS_ONLY),
    Documented("StructuredOpts.__len__", "method", _OPTIONS + "__len__", "()"),
    Documented("StructuredOpts.__iter__", "method", _OPTIONS + "__iter__", "()"),
    Documented("StructuredOpts.__contains__", "method", _OPTIONS + "__contains__", "(key)", _FIELDS_ONLY),
    Documented(
        "StructuredOpts.get_docstrings",
        "class method",
        _OPTIONS + "get_docstrings",
        "()",
        Difference("upstream fault", "a text may be in any quotes and have quotes in it; this source misses such ones"),
    ),
    Documented(
        "StructuredOpts.as_runopts",
        "class method",
        _OPTIONS + "as_runopts",
        "()",
        Difference(
            "upstream fault", "`int | None` is an int, as in TorchX nightly; this source knows Optional[int] alone"
        ),
    ),
    Documented("StructuredOpts.__or__", "method", _OPTIONS + "__or__", "(other)"),
)

_RESPONSES = (
    Documented("Stream", "members", _API + "Stream", "STDOUT='stdout', STDERR='stderr', COMBINED='combined'"),
    Documented(
        "DescribeAppResponse",
        "class",
        _API + "DescribeAppResponse",
        "(app_id='<NOT_SET>', state=AppState.UNSUBMITTED, num_restarts=-1, msg='<NONE>', "
        "structured_error_msg='<NONE>', ui_url=None, metadata=dict, roles_statuses=list, roles=list)",
        Difference(
            "addition",
            "what the screens show beside follows as keywords",
            adds=(
                "name", "submitted_at", "started_at", "finished_at", "timeline", "user", "host", "reasons",
                "notes", "image", "log_dir", "insight_dir", "ports", "cfg", "not_known",
            ),
        ),
    ),
    Documented(
        "ListAppResponse",
        "class",
        _API + "ListAppResponse",
        "(app_id, state, app_handle='<NOT_SET>', name='')",
        Difference(
            "addition",
            "what the screens show beside follows as keywords",
            adds=(
                "submitted_at", "started_at", "finished_at", "replicas_running", "replicas_wanted",
                "replicas_succeeded", "user", "image", "msg", "host", "notes", "limit_at", "foreign", "after",
            ),
        ),
    ),
    Documented("ListAppResponse.__hash__", "method", _API + "ListAppResponse.__hash__", "()"),
)  # fmt: skip

_INTERFACE = (
    Documented("Scheduler", "class", _API + "Scheduler", "(backend, session_name)"),
    Documented("Scheduler.backend", "attribute", _SCHEDULER + "backend"),
    Documented("Scheduler.session_name", "attribute", _SCHEDULER + "session_name"),
    Documented("Scheduler.close", "method", _SCHEDULER + "close", "()"),
    Documented("Scheduler.submit", "method", _SCHEDULER + "submit", "(app, cfg, workspace=None)"),
    Documented("Scheduler.schedule", "abstract method", _SCHEDULER + "schedule", "(dryrun_info)"),
    Documented("Scheduler.submit_dryrun", "method", _SCHEDULER + "submit_dryrun", "(app, cfg)"),
    Documented("Scheduler._submit_dryrun", "abstract method", _SCHEDULER + "_submit_dryrun", "(app, cfg)"),
    Documented("Scheduler.run_opts", "method", _SCHEDULER + "run_opts", "()"),
    Documented("Scheduler._run_opts", "method", _SCHEDULER + "_run_opts", "()"),
    Documented("Scheduler.describe", "abstract method", _SCHEDULER + "describe", "(app_id)"),
    Documented("Scheduler.list", "abstract method", _SCHEDULER + "list", "(cfg=None)"),
    Documented("Scheduler.exists", "method", _SCHEDULER + "exists", "(app_id)"),
    Documented("Scheduler._cancel_existing", "abstract method", _SCHEDULER + "_cancel_existing", "(app_id)"),
    Documented("Scheduler.cancel", "method", _SCHEDULER + "cancel", "(app_id)"),
    Documented("Scheduler.delete", "method", _SCHEDULER + "delete", "(app_id)"),
    Documented("Scheduler._delete_existing", "method", _SCHEDULER + "_delete_existing", "(app_id)"),
    Documented("Scheduler.log_iter", "method", _SCHEDULER + "log_iter", LOG_ITER),
    Documented("iter[50]", "method", "torchx_tui.backends.shared.file_lines:FileLines.__getitem__"),
    Documented("Scheduler._pre_build_validate", "method", _SCHEDULER + "_pre_build_validate", "(app, scheduler, cfg)"),
    Documented("Scheduler._validate", "method", _SCHEDULER + "_validate", "(app, scheduler, cfg)"),
    Documented("filter_regex", "function", _API + "filter_regex", "(regex, data)"),
    Documented("split_lines", "function", _API + "split_lines", "(text)"),
    Documented("split_lines_iterator", "function", _API + "split_lines_iterator", "(chunks)"),
    Documented("wait", "method", _RUNNER + "wait"),
    Documented("status", "method", _RUNNER + "status"),
    Documented("run", "method", _RUNNER + "run"),
    Documented("runner.list", "method", _RUNNER + "list"),
)

SCHEDULER_API = Part(
    "The source of torchx.schedulers.api", "newest", _USED + _STRUCTURED_OPTIONS + _RESPONSES + _INTERFACE
)
