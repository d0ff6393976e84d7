"""What config says of a launch: `.torchxconfig`, a profile over it, and what is said about mistakes in either."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchx_tui.backends.kubernetes.request import KubernetesOpts
from torchx_tui.backends.local.request import LocalOpts
from torchx_tui.components.finder import describe
from torchx_tui.components.values import parse_value
from torchx_tui.settings.config import load_settings
from torchx_tui.settings.launch_defaults import Given, LaunchDefaults, resolve
from torchx_tui.specs.run_options import runopts

PROFILES = """
[profiles.prod]
scheduler = "kubernetes"
workspace = "file:///src"
runopts = { queue = "prod", reserved_millicpu = 0, validateSpec = false }
components."utils.echo" = { msg = "from a profile", num_replicas = 2 }
components."utils.sh" = { args = ["echo", "two words"], env = { A = "1", B = "x,y" } }

[profiles.here]
runopts = { log_dir = "/logs", nope = 1, prepend_cwd = "perhaps" }
"""
FILE = """
[cli:run]
scheduler = local_cwd
component = utils.echo
workspace = .

[cli:list]
scheduler = local_docker

[component:utils.echo]
msg = from the file
mgs = 1

[kubernetes]
queue = research
namespace = ml
service_acount = me
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".torchxconfig").write_text(FILE)
    return tmp_path


def loaded(tmp_path: Path, profile: str | None = "", before: str = "") -> LaunchDefaults:
    path = tmp_path / "config.toml"
    path.write_text(before + PROFILES)
    return LaunchDefaults.load(load_settings(path), profile)


def kubernetes_options() -> runopts:
    return KubernetesOpts.as_runopts()


def options(defaults: LaunchDefaults, scheduler: str, known: runopts | None = None) -> dict[str, Given]:
    return resolve(defaults, scheduler, known or kubernetes_options()).options


def arguments(defaults: LaunchDefaults, component: str) -> dict[str, Given]:
    return resolve(defaults, component=component, doc=describe(component)).arguments


def values(given: dict[str, Given]) -> dict[str, tuple[object, str]]:
    return {name: (one.value, "profile" if one.is_of_profile else ".torchxconfig") for name, one in given.items()}


def test_the_file_alone(project):
    defaults = loaded(project)
    assert defaults.profile == ""
    assert defaults.scheduler() == Given("local_cwd", f"{project}/.torchxconfig, section [cli:run]")
    assert defaults.component() == "utils.echo"
    workspace, listed = defaults.workspace(), defaults.listed_scheduler()
    assert (workspace and workspace.value, listed and listed.value) == (".", "local_docker")
    assert values(options(defaults, "kubernetes")) == {
        "queue": ("research", ".torchxconfig"),
        "namespace": ("ml", ".torchxconfig"),
    }
    assert options(defaults, "local_cwd", LocalOpts.as_runopts()) == {}


def test_a_profile_wins_over_the_file(project):
    defaults = loaded(project, "prod")
    assert defaults.scheduler() == Given("kubernetes", "profile prod")
    workspace = defaults.workspace()
    assert workspace
    assert workspace.value == "file:///src"
    assert values(options(defaults, "kubernetes@there")) == {
        "queue": ("prod", "profile"),
        "namespace": ("ml", ".torchxconfig"),
        "reserved_millicpu": (0, "profile"),
        "validate_spec": (False, "profile"),
    }
    assert values(arguments(defaults, "utils.echo")) == {
        "msg": ("from a profile", "profile"),
        "num_replicas": ("2", "profile"),
    }


def test_options_of_a_profile_are_for_its_scheduler_alone(project):
    defaults = loaded(project, "prod")
    resolved = resolve(defaults, "local_cwd", LocalOpts.as_runopts())
    assert (resolved.options, resolved.problems) == ({}, [])


def test_profile_values_become_text_as_typed(project):
    given = arguments(loaded(project, "prod"), "utils.sh")
    assert given["args"].value == "echo 'two words'"
    assert given["env"].value == "A=1,B='x,y'"


def test_words_of_the_file_are_split_at_spaces_as_by_torchx(project):
    (project / ".torchxconfig").write_text("[component:utils.sh]\nargs = -- echo 'two words'\n")
    given = arguments(loaded(project), "utils.sh")
    parameter = describe("utils.sh").parameter("args")
    assert parameter is not None
    assert parse_value(parameter, given["args"].value) == ("echo", "'two", "words'")


def test_what_is_not_known_is_a_problem_and_left_out(project):
    defaults = loaded(project, "here")
    file = project / ".torchxconfig"
    local = resolve(defaults, "local_cwd", LocalOpts.as_runopts())
    assert list(local.options) == ["log_dir"]
    perhaps, nope = local.problems
    assert (local.faults, local.file_faults, local.profile_faults) == ([perhaps], [], [perhaps])
    assert nope.startswith("profiles.here.runopts.nope is not a run option of local_cwd; known are log_dir")
    assert perhaps.startswith("profiles.here.runopts.prepend_cwd: `perhaps` is not true or false")
    echo = resolve(defaults, "kubernetes", kubernetes_options(), "utils.echo", describe("utils.echo"))
    service_account, queue, *rest = echo.problems
    assert service_account == (
        f"{file}:17: [kubernetes] service_acount is not a run option of kubernetes; did you mean service_account?"
    )
    assert queue.startswith("profiles.here.runopts.log_dir is not a run option of kubernetes")
    assert rest[-1] == f"{file}:12: [component:utils.echo] mgs is not an argument of utils.echo; did you mean msg?"


def test_the_settings_choose_a_profile_and_none_takes_it_back(project):
    before = '[launch]\nprofile = "prod"\n'
    assert loaded(project, before=before).profile == "prod"
    assert loaded(project, "here", before).profile == "here"
    assert loaded(project, None, before).profile == ""


def test_an_unknown_profile_is_a_problem(project):
    defaults = loaded(project, "prd")
    assert defaults.profile == ""
    assert resolve(defaults).problems == ["prd is not a profile of config.toml; there are prod, here"]


def test_a_broken_file_is_a_fault_and_the_other_one_is_read(project, own_home):
    (project / ".torchxconfig").write_text("[local_cwd\n")
    (own_home / ".torchxconfig").write_text("[cli:run]\nscheduler = kubernetes\n")
    defaults = loaded(project)
    assert [fault.partition(": ")[0] for fault in defaults.file_faults] == [f"{project}/.torchxconfig:1"]
    scheduler = defaults.scheduler()
    assert scheduler
    assert scheduler.value == "kubernetes"
    without = defaults.without_files()
    assert (without.file_faults, without.scheduler()) == ((), None)


def test_a_missing_file_that_the_environment_names_is_a_fault(project, monkeypatch):
    monkeypatch.setenv("TORCHXCONFIG", "/gone")
    defaults = LaunchDefaults.load(load_settings())
    assert defaults.file_faults == ("TORCHXCONFIG names /gone, which is not a file: correct it, or unset it",)
    assert defaults.scheduler() is None
