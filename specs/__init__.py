"""The job model: AppDef and its parts. Standard library only, and yaml for texts in YAML.

The names below are for component files and plugins, as TorchX exports them. The project imports from the modules.
"""

from ..base.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "..base.errors": "ConfigError TorchXTuiError",
        ".errors": (
            "AppDefError ArgumentError BackendUnavailableError ComponentLoadError ComponentNotFoundException "
            "ComponentValidationException InvalidRunConfigException JobNotFoundError MalformedAppHandleException "
            "MountError SchedulerError UnknownAppException UnknownResourceError UnknownRoleError "
            "UnknownSchedulerException"
        ),
        ".handles": "AppHandle ParsedAppHandle make_app_handle make_unique normalize_str parse_app_handle random_id",
        ".mounts": "BindMount DeviceMount Mount MountType VolumeMount parse_mounts",
        ".resource_names": "get_named_resources named_resources resource",
        ".resources": "NULL_RESOURCE Resource",
        ".roles": "AppDef AppDryRunInfo RetryPolicy Role macros",
        ".run_options": "CfgVal get_type_name parse_bool runopt runopts",
        ".serialize": "appdef_from_dict appdef_from_json appdef_to_dict appdef_to_json",
        ".status": (
            "ALL AppState AppStatus AppStatusError MISSING NA NONE ReplicaState ReplicaStatus RoleStatus UNKNOWN "
            "is_started is_terminal may_follow"
        ),
        ".workspace": "Workspace",
    },
)
