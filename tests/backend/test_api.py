"""The base classes: structured options, the Scheduler's own methods, and the helpers for lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from backend.tables import TABLES
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.backends import abilities, api
from torchx_tui.backends.api import DescribeAppResponse, ListAppResponse, NameFault, Scheduler, StructuredOpts
from torchx_tui.backends.types import is_usable
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs.errors import InvalidRunConfigException, SchedulerError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, AppDryRunInfo, Role
from torchx_tui.specs.run_options import runopts
from torchx_tui.specs.status import AppState, ReplicaStatus, RoleStatus, is_terminal

# Options


@dataclass
class Opts(StructuredOpts):
    cluster_name: str
    """Where to run."""

    num_retries: int = 3
    """How often,
    at most."""

    hpc_identity: str | None = None
    """Who pays.

    Said in "quotes" too."""

    tags: list[str] = field(default_factory=list)
    weight: float | None = 0.5
    plain: bool = False


@dataclass
class MoreOpts(Opts):
    extra: dict[str, str] | None = None
    """One more."""


@dataclass
class Mail(StructuredOpts):
    user_name: str
    """Whom to write to."""

    kind: str | None = None


@dataclass
class GroupedOpts(StructuredOpts):
    mail: Mail | None = None
    mail_type: str | None = field(default=None, metadata={"cfg_key": "mail-type"})
    """When to write."""

    _session: str = ""


def described(opts):
    return {name: (opt.opt_type, opt.is_required, opt.default, opt.help) for name, opt in opts.as_runopts()}


def test_fields_become_run_options():
    expected = {
        "cluster_name": (str, True, None, "Where to run."),
        "num_retries": (int, False, 3, "How often,\nat most."),
        "hpc_identity": (str, False, None, 'Who pays.\n\nSaid in "quotes" too.'),
        "tags": (list[str], False, None, "tags"),
        "weight": (float, False, 0.5, "weight"),
        "plain": (bool, False, False, "plain"),
    }
    assert described(Opts) == expected
    assert described(MoreOpts) == {**expected, "extra": (dict[str, str], False, None, "One more.")}
    assert list(Opts.get_docstrings()) == ["cluster_name", "num_retries", "hpc_identity"]


def test_options_without_source_have_no_texts():
    namespace = {"StructuredOpts": StructuredOpts, "dataclass": dataclass, "__name__": __name__}
    exec("@dataclass\nclass Made(StructuredOpts):\n    queue: str = 'q'\n    '''Lost.'''", namespace)
    assert described(namespace["Made"])["queue"] == (str, False, "q", "queue")


def test_options_have_two_spellings():
    opts = Opts.from_cfg({"clusterName": "c", "num_retries": 5})
    assert opts == Opts("c", 5) == Opts.from_cfg({"clusterName": "c", "cluster_name": "c", "num_retries": 5})
    assert Opts.snake_to_camel("a_bc_d") == "aBcD"
    assert Opts.as_runopts().resolve({"clusterName": "c"})["cluster_name"] == "c"
    with pytest.raises(InvalidRunConfigException, match="`clusterName` and `cluster_name` are one option"):
        Opts.from_cfg({"clusterName": "c", "cluster_name": "d"})
    with pytest.raises(TypeError, match="cluster_name"):
        Opts.from_cfg({})


def test_options_may_be_declared_in_camel_case():
    @dataclass
    class Camel(StructuredOpts):
        jobName: str = "a"
        sendTo: Mail | None = None

    opts = Camel.from_cfg({"job_name": "b", "send_to.user_name": "me"})
    assert (opts, opts["job_name"]) == (Camel("b", Mail("me")), "b")


def test_groups_and_keys_of_options():
    assert described(GroupedOpts) == {
        "mail.user_name": (str, True, None, "Whom to write to."),
        "mail.kind": (str, False, None, "kind"),
        "mail-type": (str, False, None, "When to write."),
    }
    opts = GroupedOpts.from_cfg({"mail.userName": "me", "mail-type": "END"})
    assert opts == GroupedOpts(Mail("me"), "END")
    assert (opts["mail.user_name"], opts["mail-type"], opts["mail_type"]) == ("me", "END", "END")
    assert dict(opts) == {"mail.user_name": "me", "mail.kind": None, "mail-type": "END"}
    # The group's own name has no meaning.
    assert GroupedOpts.from_cfg({"mail": "x", "mail.kind": "END", "mail.user_name": "me"}).mail == Mail("me", "END")
    assert GroupedOpts.from_cfg({"mail": "x"}).mail is GroupedOpts.from_cfg({}).mail is None
    with pytest.raises(KeyError):
        opts["_session"]


def test_unknown_keys_are_kept():
    opts = Opts.from_cfg({"cluster_name": "c", "image_repo": "r", "some.thing": 1})
    assert (opts["image_repo"], opts["some.thing"]) == ("r", 1)
    assert (opts == Opts("c"), "image_repo" in Opts("c")) == (True, False)
    assert list(opts)[-2:] == ["image_repo", "some.thing"]


def test_options_are_a_mapping():
    opts = Opts("c", hpc_identity=None)
    assert isinstance(opts, Mapping)
    assert dict(opts) == {
        "cluster_name": "c", "num_retries": 3, "hpc_identity": None, "tags": [], "weight": 0.5, "plain": False,
    }  # fmt: skip
    assert (len(opts), opts["clusterName"]) == (6, "c")
    assert (opts.get("hpc_identity", "nobody"), opts.get("no_such", 1)) == ("nobody", 1)
    assert ["num_retries" in opts, "get" in opts, 1 in opts] == [True, False, False]
    assert Opts("c") | {"bar": 2, "num_retries": 9} == {**dict(opts), "bar": 2, "num_retries": 9}
    with pytest.raises(KeyError):
        opts["no_such"]


# Schedulers


class Recorder(Scheduler[Mapping[str, Any]]):
    """Keeps the apps that it was given."""

    def __init__(self):
        super().__init__("recorder", "session")
        self.apps = {}
        self.cancelled = []

    def _run_opts(self):
        opts = runopts()
        opts.add("queue", type_=str, default="default", help="where")
        return opts

    def _submit_dryrun(self, app, cfg):
        return AppDryRunInfo({"name": app.name, **cfg}, str)

    def schedule(self, dryrun_info):
        self.apps[dryrun_info.request["name"]] = AppState.RUNNING
        return dryrun_info.request["name"]

    def describe(self, app_id):
        return DescribeAppResponse(app_id, self.apps[app_id]) if app_id in self.apps else None

    def list(self, cfg=None):
        return [ListAppResponse(app_id, state) for app_id, state in self.apps.items()]

    def _cancel_existing(self, app_id):
        self.cancelled.append(app_id)


class Renaming(Recorder):
    """Changes requests in its dry run."""

    def submit_dryrun(self, app, cfg):
        info = super().submit_dryrun(app, cfg)
        info.request["name"] += "-renamed"
        return info


class Packer(WorkspaceMixin[Any], Recorder):
    def workspace_opts(self):
        opts = runopts()
        opts.add("image_repo", type_=str, default=None, help="where images go")
        return opts

    def build_workspace_and_update_role(self, role, workspace, cfg):
        role.image = f"{role.image}+{workspace}"


class Greedy(Role):
    def pre_proc(self, scheduler, dryrun_info):
        dryrun_info.request["seen_by"] = scheduler
        return dryrun_info


@pytest.fixture
def app():
    return AppDef("app", [Role("r", "i")])


def test_submit_is_a_dry_run_and_a_schedule(app):
    scheduler = Recorder()
    assert scheduler.submit(app, {"queue": "fast"}) == "app"
    info = scheduler.submit_dryrun(AppDef("app", [Greedy("r", "i")]), {})
    assert info.request == {"name": "app", "queue": "default", "seen_by": "recorder"}
    assert info.cfg == {"queue": "default"}
    assert info.app is not None
    with pytest.raises(InvalidRunConfigException):
        scheduler.submit(app, {"que": "x"})
    assert Renaming().submit(app, {}) == "app-renamed"


def test_unknown_apps_are_not_cancelled(app):
    scheduler = Recorder()
    for _ in range(2):
        scheduler.cancel("app")
        scheduler.delete("app")
        scheduler.submit(app, {})
    assert scheduler.cancelled == ["app", "app"]
    assert scheduler.exists("app")


def test_a_workspace_needs_the_mixin(app):
    with pytest.raises(SchedulerError, match="takes no workspace"):
        Recorder().submit(app, {}, workspace="/tmp")
    scheduler = Packer()
    assert (scheduler.takes_workspace, Recorder().takes_workspace) == (True, False)
    scheduler.submit(app, {"image_repo": "repo"}, workspace="/tmp")
    assert app.roles[0].image == "i+/tmp"
    assert [name for name, _ in scheduler.run_opts()] == ["queue", "image_repo"]


def test_defaults_of_a_scheduler(app):
    scheduler = Recorder()
    assert scheduler.capabilities == api.Capabilities()
    assert (scheduler.context, scheduler.takes_contexts, scheduler.missing_jobs()) == ("", True, "")
    with pytest.raises(NotImplementedError, match="recorder has no logs to read"):
        scheduler.log_iter("a", "r")
    with pytest.raises(ValueError, match="No resource for role: r"):
        scheduler._validate(app, "recorder", {})
    scheduler._validate(AppDef("a", [Role("r", "i", resource=Resource(1, 0, 1))]), "recorder", {})


ABILITIES = [ability for ability in vars(abilities).values() if getattr(ability, "_is_runtime_protocol", False)]


@pytest.mark.parametrize("ability", ABILITIES)
def test_a_scheduler_has_no_ability_by_default(ability):
    assert not isinstance(Recorder(), ability)


@pytest.mark.parametrize("state", AppState)
def test_an_app_that_ended_or_is_unknown_has_ended(app, state):
    scheduler = Recorder()
    assert scheduler.has_ended("app")
    scheduler.describe = lambda app_id: DescribeAppResponse(app_id, state)
    assert scheduler.has_ended("app") is is_terminal(state)


# Answers


def test_defaults_of_answers():
    """Fields that a scheduler does not set are unknown, in schedulers of other packages too."""
    answers = [
        DescribeAppResponse(),
        ListAppResponse("a", AppState.RUNNING),
        api.ReplicaUsage("r", 0),
        api.JobAction("hold", "It is held."),
        api.PartitionStatus({}, "main"),
        api.Alternative({}, None),
        api.Finding("ok", ""),
        api.PublishedPort("r", 0, "", 1, "", 2),
        NameFault("", "x", "", ""),
        api.Capabilities(),
    ]
    assert [repr(answer) for answer in answers] == Path(__file__).with_name("defaults.txt").read_text().splitlines()


def test_rows_are_hashable():
    rows = [ListAppResponse(app_id, AppState.RUNNING, notes=["x"]) for app_id in "aab"]
    assert len({*rows}) == 2


@pytest.mark.parametrize(("wanted", "known", "counts"), TABLES["api"]["replica_counts"])
def test_replica_counts(wanted, known, counts):
    roles = [Role(name, "", num_replicas=number) for name, number in wanted.items()]
    replica = ReplicaStatus(0, AppState.RUNNING, "", "")
    statuses = [RoleStatus(name, [replica] * number) for name, number in known.items()]
    assert DescribeAppResponse(roles=roles, roles_statuses=statuses).replica_counts == counts


@pytest.mark.parametrize(
    ("state", "at", "ended"),
    [("RUNNING", 1.0, False), ("FAILED", None, True), ("UNKNOWN", 1.0, True), ("UNKNOWN", None, False)],
)
def test_an_end_at_an_unknown_state_is_an_end(state, at, ended):

    assert DescribeAppResponse(state=AppState[state], finished_at=at).has_ended is ended


@pytest.mark.parametrize("name", ["submitted_at", "started_at", "finished_at", "limit_at"])
@pytest.mark.parametrize(
    ("value", "known"),
    [(0.0, 0.0), (5, 5.0), (1e9, 1e9), (-1.0, None), (3e11, None), (float("nan"), None), ("x", None)],
)
def test_impossible_times_are_unknown(name, value, known):
    row = ListAppResponse("a", AppState.RUNNING, **{name: value})
    assert is_usable(row) is True
    assert getattr(row, name) == known
    assert isinstance(getattr(row, name), float | None)


@pytest.mark.parametrize("app_id", ["", "a\nb", 7, None])
def test_a_row_with_an_impossible_id_is_not_usable(app_id):
    assert is_usable(ListAppResponse(app_id, AppState.RUNNING)) is False


@pytest.mark.parametrize(("refused", "words"), [(True, "it is long, so be short"), (False, "it is long: be short")])
def test_texts_of_a_name_fault(refused, words):
    fault = NameFault("", "x", "it is long", "be short", refused)
    assert (fault.words, fault.what, NameFault("r", "x", "", "").what) == (words, "The app's name", "The role's name")


# Lines


@given(st.text(alphabet="a\n\r\u2028"))
def test_texts_are_split_at_newlines_alone(text):
    lines = api.split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])
    assert all(line.count("\n") <= 1 and line for line in lines)


def test_chunks_and_lines():
    assert api.split_lines("a\r\nb\rc\x0bd\u2028\n\ne") == ["a\r\n", "b\rc\x0bd\u2028\n", "\n", "e"]
    assert list(api.split_lines_iterator(iter(["a\nb", "c\n"]))) == ["a\n", "b", "c\n"]
    assert list(api.filter_regex("b+$", iter(["abb", "bba", "b"]))) == ["abb", "b"]
