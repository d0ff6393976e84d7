"""Support `import torchx` without TorchX: map its modules to those of torchx-tui."""

from __future__ import annotations

import importlib
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any

# For each module of TorchX the modules of torchx_tui that have its names; the first one wins.
_HOMES_TABLE = """
torchx
torchx.components
torchx.components.component_test_base  components.component_test
torchx.components.dist                 components.dist
torchx.components.structured_arg       components.structured_arg
torchx.components.utils                components.utils
torchx.runner                          backends.torchx_names backends.runner
torchx.runner.api                      backends.torchx_names backends.runner backends.api
torchx.runner.config                   backends.torchxconfig
torchx.schedulers                      backends.registry backends.api
torchx.schedulers.api                  backends.api
torchx.schedulers.docker_scheduler     backends.docker.scheduler
torchx.schedulers.ids                  specs
torchx.schedulers.kubernetes_scheduler backends.kubernetes.scheduler
torchx.schedulers.local_scheduler      backends.local.scheduler
torchx.schedulers.slurm_scheduler      backends.slurm.scheduler
torchx.specs                           specs
torchx.specs.api                       specs
torchx.specs.builders                  specs
torchx.specs.file_linter               components.lint components.model
torchx.specs.finder                    specs components.finder
torchx.specs.named_resources_aws       specs.named_resources_aws
torchx.specs.named_resources_generic   specs.named_resources_generic
torchx.specs.serialize                 specs.serialize
torchx.version
torchx.workspace                       backends.workspace backends.workspace.mixin specs
torchx.workspace.api                   backends.workspace backends.workspace.mixin specs
torchx.workspace.dir_workspace         backends.workspace.mixin
torchx.workspace.docker_workspace      backends.workspace.docker_workspace
"""
_HOMES = {name: homes for name, *homes in map(str.split, _HOMES_TABLE.strip().splitlines())}
# Names that differ in torchx_tui: the module and name of TorchX, then those here.
_RENAMED_TABLE = """
torchx                                 IMAGE              components.image              DEFAULT_IMAGE
torchx                                 __version__        components.image              TORCHX_VERSION
torchx.version                         TORCHX_IMAGE       components.image              DEFAULT_IMAGE
torchx.version                         __version__        components.image              TORCHX_VERSION
torchx.components.dist                 _TORCH_DEBUG_FLAGS components.dist               DEBUG_FLAGS
torchx.schedulers.docker_scheduler     Opts               backends.docker.scheduler     DockerOpts
torchx.schedulers.kubernetes_scheduler Opts               backends.kubernetes.scheduler KubernetesOpts
torchx.schedulers.local_scheduler      Opts               backends.local.request        LocalOpts
torchx.schedulers.docker_scheduler     LABEL_VERSION      backends.docker.labels        VERSION
torchx.schedulers.docker_scheduler     LABEL_APP_ID       backends.docker.labels        APP_ID
torchx.schedulers.docker_scheduler     LABEL_ROLE_NAME    backends.docker.labels        ROLE_NAME
torchx.schedulers.docker_scheduler     LABEL_REPLICA_ID   backends.docker.labels        REPLICA_ID
"""
_RENAMED = {
    (module, name): (home, own) for module, name, home, own in map(str.split, _RENAMED_TABLE.strip().splitlines())
}
NOT_INSTALLED = "It is part of TorchX, which is not installed for"


class TorchXModules:
    """An import finder for `torchx` and all below it, placed last so that an installed TorchX wins."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module of TorchX."""
        if name.partition(".")[0] != "torchx":
            return None
        if name not in _HOMES:
            parent = name.rpartition(".")[0]
            there = ", ".join(known for known in _HOMES if known.rpartition(".")[0] == parent)
            raise ModuleNotFoundError(
                f"No module named '{name}'. {NOT_INSTALLED} {sys.executable}. "
                f"torchx-tui has {there or 'no module'} of {parent}",
                name=name,
            )
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make a module that looks up its names in torchx_tui on first use."""
        module = types.ModuleType(spec.name, f"The names of {spec.name} that torchx-tui has.")

        def get(name: str) -> Any:
            if (spec.name, name) in _RENAMED:
                home, own = _RENAMED[spec.name, name]
                return getattr(_import(home), own)
            if f"{spec.name}.{name}" in _HOMES:
                return importlib.import_module(f"{spec.name}.{name}")
            for home in () if name.startswith("__") else _HOMES[spec.name]:
                found = getattr(_import(home), name, None)
                if found is not None:
                    return found
            raise AttributeError(
                f"module '{spec.name}' has no attribute '{name}'. {NOT_INSTALLED} {sys.executable}", name=name
            )

        module.__getattr__ = get  # type: ignore[method-assign]
        names = [name for home in _HOMES[spec.name][:1] for name in getattr(_import(home), "__all__", ())]
        if names:
            module.__all__ = names  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the names are looked up when they are used."""


def _import(home: str) -> types.ModuleType:
    return importlib.import_module(f"torchx_tui.{home}")
