"""Which plugins are found, where, and that nothing is imported for it."""

import subprocess
import sys

import pytest

from torchx_tui.backends import registry
from torchx_tui.backends.abilities import KeepsLogFiles
from torchx_tui.backends.plugin import found
from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.base.modules import plugin_sources, plugin_sources_error
from torchx_tui.components.build import build_app
from torchx_tui.components.role_overrides import override_roles
from torchx_tui.guest.resources import load_named_resources
from torchx_tui.specs.resource_names import named_resources
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role

NAMESPACED = """
    from acme_jobs import create as make
    from torchx.plugins import register

    @register.scheduler()
    def by_name_of_function(session_name, **kwargs):
        return make(session_name, **kwargs)

    @register.scheduler(name="given")
    def another(session_name, **kwargs):
        return make(session_name, **kwargs)

    @register.named_resource()
    def no_scheduler(): ...

    def helper(): ...
"""


def names():
    return {one.name: one.origin for one in found.found_schedulers()[0]}


def test_entry_points_and_modules(plugins):
    plugins.distribution("acme", "torchx.schedulers", acme="acme_jobs:create", local_cwd="acme_jobs:create")
    plugins.module("torchx_plugins.schedulers.sub.jobs", NAMESPACED)
    plugins.module("torchx_plugins.schedulers._private", NAMESPACED)
    assert names()["acme"] == "acme_jobs:create of acme"
    assert names()["by_name_of_function"].startswith("torchx_plugins.schedulers.sub.jobs:by_name_of_function of /")
    assert names()["given"].startswith("torchx_plugins.schedulers.sub.jobs:another of /")
    assert "no_scheduler" not in names()
    # Ours come first, and are not replaced.
    made = list(registry.get_scheduler_factories())
    found = ["acme", "by_name_of_function", "given"]
    assert made[-3:] == found
    assert made.count("local_cwd") == 1
    assert [one.name for one in registry.scheduler_plugins()[0]] == found


def test_an_entry_point_wins_and_that_is_told(plugins):
    plugins.distribution("acme", "torchx.schedulers", given="acme_jobs:create")
    plugins.module("torchx_plugins.schedulers.jobs", NAMESPACED)
    assert names()["given"] == "acme_jobs:create of acme"
    (fault,) = found.found_schedulers()[1]
    assert fault.where == "torchx_plugins.schedulers.jobs"
    assert "given is registered by acme_jobs:create of acme (torchx.schedulers) as well" in fault.why


def test_a_module_that_is_not_python_is_told(plugins):
    plugins.module("torchx_plugins.schedulers.broken", "def (")
    plugins.module("torchx_plugins.schedulers.jobs", NAMESPACED)
    (fault,) = found.found_schedulers()[1]
    assert "broken.py is not Python: SyntaxError" in fault.why
    assert "given" in names()


@pytest.mark.parametrize(
    ("sources", "expected"),
    [("0", ""), ("1", "by_name_of_function given"), ("2", "acme"), ("3", "acme by_name_of_function given")],
)
def test_the_sources_can_be_chosen(plugins, monkeypatch, sources, expected):
    plugins.distribution("acme", "torchx.schedulers", acme="acme_jobs:create")
    plugins.module("torchx_plugins.schedulers.jobs", NAMESPACED)
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", sources)
    assert set(names()) == {*expected.split()}


@pytest.mark.parametrize("text", ["4", "both", ""])
def test_a_malformed_choice_is_all_and_a_fault(monkeypatch, text):
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", text)
    assert plugin_sources() == (True, True)
    assert "use 0 (none)" in plugin_sources_error()


def test_a_module_of_the_namespace_makes_schedulers(plugins):
    plugins.process_jobs()
    plugins.module("torchx_plugins.schedulers.jobs", NAMESPACED.replace("acme_jobs", "acme_process_jobs"))
    made = registry.create_scheduler("given", "torchx")
    assert made.backend == "given"
    assert made.list() == []


def test_torchx_is_not_imported_to_find_them(plugins):
    plugins.process_jobs()
    plugins.module("torchx_plugins.schedulers.jobs", NAMESPACED)
    program = (
        "import sys; import torchx_tui.backends.registry as registry; print(list(registry.get_scheduler_factories())); "
        "print([name for name in sys.modules if name.split('.')[0] in ('torchx', 'torchx_plugins', 'acme_jobs')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed, imported = done.stdout.splitlines()
    assert "'processes'" in listed
    assert "'given'" in listed
    assert imported == "[]"


def test_a_scheduler_of_our_contract_in_their_group(plugins):
    plugins.module(
        "acme_ours",
        """
        from torchx_tui.backends.local.scheduler import LocalScheduler
        def create(session_name, **kwargs):
            return LocalScheduler(session_name, handle_signals=False)
        """,
    )
    plugins.distribution("acme", "torchx.schedulers", ours="acme_ours:create")
    made = registry.create_scheduler("ours", "torchx")
    assert isinstance(made, KeepsLogFiles)


def test_a_factory_is_given_what_torchx_gives_it(plugins, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHX_ACME_TOKEN", str(tmp_path / "abc"))
    plugins.process_jobs()
    plugins.module(
        "acme_taking",
        """
        from acme_process_jobs import ProcessScheduler
        def create(session_name, torchx_acme_token, **kwargs):
            return ProcessScheduler(session_name, torchx_acme_token + session_name)
        """,
    )
    plugins.distribution("acme", "torchx.schedulers", taking="acme_taking:create")
    made = registry.create_scheduler("taking", "mine")
    app = AppDef("app", [Role("worker", "", entrypoint="true", resource=Resource(1, 0, 64))])
    assert (tmp_path / "abcmine" / made.submit(app, {"folder": "unused"})).is_dir()
    made.close()


def test_a_run_option_called_context_chooses_no_other_scheduler(plugins):
    plugins.process_jobs()
    pool = SchedulerPool("torchx")
    assert pool.resolve_context("processes", {"context": "prod"}) == "processes"
    pool.close()


RESOURCES = """
    from torchx.plugins import powers_of_two_gpus, register
    from torchx.specs import Resource

    @register.named_resource(fractionals=powers_of_two_gpus, aliases=["acme_big"])
    def acme_gpu(fractional: float = 1.0) -> Resource:
        print("making one")
        return Resource(cpu=int(64 * fractional), gpu=int(8 * fractional), memMB=int(1024 * fractional))
"""


def test_named_resources_of_the_namespace(plugins, capfd):
    plugins.module("torchx_plugins.named_resources.acme", RESOURCES)
    plugins.module("torchx_plugins.named_resources.broken", "raise RuntimeError('no licence')")
    plugins.module("torchx_plugins.named_resources.ends", "import sys; sys.exit(3)")
    load_named_resources()
    assert {"acme_gpu", "acme_big", "acme_gpu_8", "acme_gpu_4", "acme_gpu_2", "acme_gpu_1"} <= set(named_resources)
    quarter = named_resources["acme_gpu_2"]
    assert (quarter.cpu, quarter.gpu, quarter.memMB) == (16, 2, 256)
    assert quarter.get_resource_name() == "acme_gpu_2"
    assert quarter.is_fractional()
    assert not named_resources["acme_gpu"].is_fractional()
    for why in ("broken could not be read: RuntimeError: no licence", "ends could not be read: .*SystemExit"):
        with pytest.raises(KeyError, match=rf"torchx_plugins.named_resources.{why}"):
            named_resources["zzzzzz"]
    # Nothing of it runs here.
    told = capfd.readouterr()
    assert "making one" not in told.out + told.err
    assert not [name for name in sys.modules if name.startswith("torchx_plugins")]


def test_launch_makes_named_resources_in_a_guest(plugins):
    plugins.module("torchx_plugins.named_resources.acme", RESOURCES)
    app = build_app("utils.sh", {"h": "acme_gpu_4", "args": ["ls"]})
    assert app.roles[0].resource.gpu == 4
    named_resources.reset()
    assert override_roles(app, {"sh": {"resource": "acme_gpu_2"}}).roles[0].resource.gpu == 2
    assert not [name for name in sys.modules if name.startswith("torchx_plugins")]


def test_named_resource_that_cannot_be_made(plugins):
    text = """
        import os
        from torchx.specs import Resource
        def good(): return Resource(1, 2, 3)
        def odd(): return Resource(1, 2, 3, capabilities={"a": object()})
        def broken(): raise RuntimeError("no such host")
        def word(): return "two GPUs"
    """
    plugins.module("acme_resources", text)
    names = ("good", "odd", "broken", "word", "gone")
    plugins.distribution("acme", "torchx.named_resources", **{name: f"acme_resources:{name}" for name in names})
    load_named_resources()
    assert named_resources["good"].gpu == 2
    for name, why in (
        ("odd", "a object cannot be written as JSON"),
        ("broken", "broken of acme_resources:broken could not be made: RuntimeError: no such host"),
        ("word", "it made a str, not a Resource"),
        ("gone", "AttributeError: module 'acme_resources'"),
    ):
        with pytest.raises(KeyError, match=why):
            named_resources[name]


def test_named_resource_that_ends_its_process(plugins):
    plugins.module("torchx_plugins.named_resources.killer", "import os; os._exit(3)")
    load_named_resources()
    assert named_resources["gpu.small"].gpu == 1
    with pytest.raises(KeyError, match="its process ended with exit code 3"):
        named_resources["zzzzzz"]


def test_no_guest_is_started_where_nobody_registers_resources(plugins, monkeypatch):
    monkeypatch.setattr("torchx_tui.guest.worker.subprocess.Popen", None)
    load_named_resources()
    assert named_resources["gpu.small"].gpu == 1


def test_named_resources_whose_import_hangs_are_left_out(plugins, monkeypatch):
    monkeypatch.setattr("torchx_tui.specs.resource_names.IMPORT_TIMEOUT_S", 0.3)
    plugins.module("torchx_plugins.named_resources.hanging", "import threading; threading.Event().wait()")
    assert named_resources["gpu.small"].gpu == 1
    with pytest.raises(KeyError, match=r"hanging could not be read: .*did not end within"):
        named_resources["zzzzzz"]
