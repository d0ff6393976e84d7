"""What the documentation of torchx.schedulers names: which schedulers there are, and their interface."""

from __future__ import annotations

from interop.documented_names import LOG_ITER, Difference, Documented, Part

_API = "torchx_tui.backends.api:"
_SCHEDULER = _API + "Scheduler."
_REGISTRY = "torchx_tui.backends.registry:"
_RUNNER = "torchx_tui.backends.runner:Runner."

_FACTORIES = (
    Documented("torchx.schedulers", "module", "torchx_tui.backends.registry"),
    Documented("torchx.schedulers.get_scheduler_factories", "function", _REGISTRY + "get_scheduler_factories", "()"),
    Documented(
        "torchx.schedulers.get_default_scheduler_name", "function", _REGISTRY + "get_default_scheduler_name", "()"
    ),
    Documented("torchx.schedulers.SchedulerFactory", "class", _REGISTRY + "SchedulerFactory", "(*args, **kwargs)"),
    Documented(
        "entry points of torchx.schedulers",
        "value",
        "torchx_tui.backends.plugin.found:ENTRY_POINT_GROUP",
        "'torchx.schedulers'",
    ),
)  # fmt: skip

_INTERFACE = (
    Documented("torchx.schedulers.Scheduler", "class", _API + "Scheduler", "(backend, session_name)"),
    Documented("Scheduler.cancel", "method", _SCHEDULER + "cancel", "(app_id)"),
    Documented("Scheduler.close", "method", _SCHEDULER + "close", "()"),
    Documented("Scheduler.describe", "abstract method", _SCHEDULER + "describe", "(app_id)"),
    Documented("Scheduler.exists", "method", _SCHEDULER + "exists", "(app_id)"),
    Documented(
        "Scheduler.list",
        "abstract method",
        _SCHEDULER + "list",
        "()",
        Difference("generation", "the newest documentation has cfg", adds=("cfg",)),
    ),
    Documented("Scheduler.log_iter", "method", _SCHEDULER + "log_iter", LOG_ITER),
    Documented("Scheduler.run_opts", "method", _SCHEDULER + "run_opts", "()"),
    Documented("Scheduler.schedule", "abstract method", _SCHEDULER + "schedule", "(dryrun_info)"),
    Documented("Scheduler.submit", "method", _SCHEDULER + "submit", "(app, cfg, workspace=None)"),
    Documented("Scheduler.submit_dryrun", "method", _SCHEDULER + "submit_dryrun", "(app, cfg)"),
    Documented("iter[50]", "method", "torchx_tui.backends.shared.file_lines:FileLines.__getitem__"),
    Documented("wait", "method", _RUNNER + "wait"),
    Documented("status", "method", _RUNNER + "status"),
    Documented("run", "method", _RUNNER + "run"),
    Documented("runner.list", "method", _RUNNER + "list"),
)

_RESPONSES = (
    Documented(
        "torchx.schedulers.api.DescribeAppResponse",
        "class",
        _API + "DescribeAppResponse",
        "(app_id='<NOT_SET>', state=AppState.UNSUBMITTED, num_restarts=-1, msg='<NONE>', "
        "structured_error_msg='<NONE>', ui_url=None, roles_statuses=list, roles=list)",
        Difference(
            "generation",
            "the newest documentation has metadata before roles_statuses, and so it is here; what the screens show "
            "beside follows as keywords",
            adds=(
                "metadata", "name", "submitted_at", "started_at", "finished_at", "timeline", "user", "host", "reasons",
                "notes", "image", "log_dir", "insight_dir", "ports", "cfg", "not_known",
            ),
        ),
    ),
    Documented(
        "torchx.schedulers.api.ListAppResponse",
        "class",
        _API + "ListAppResponse",
        "(app_id, state, app_handle='<NOT_SET>')",
        Difference(
            "generation",
            "the newest documentation has name; what the screens show beside follows as keywords",
            adds=(
                "name", "submitted_at", "started_at", "finished_at", "replicas_running", "replicas_wanted",
                "replicas_succeeded", "user", "image", "msg", "host", "notes", "limit_at", "foreign", "after",
            ),
        ),
    ),
    Documented("torchx.specs.api.AppState", "class", "torchx_tui.specs:AppState"),
    Documented("torchx.specs.api.RoleStatus", "class", "torchx_tui.specs:RoleStatus"),
    Documented("torchx.specs.api.Role", "class", "torchx_tui.specs:Role"),
)  # fmt: skip

SCHEDULERS = Part("torchx.schedulers", "middle", _FACTORIES + _INTERFACE + _RESPONSES)
