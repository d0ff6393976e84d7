"""The base classes: structured options, the Scheduler's own methods, and the helpers for lines."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.streaming import LinesScheduler

from torchx_tui.backends.api import (
    Alternative,
    Capabilities,
    DescribeAppResponse,
    Finding,
    JobAction,
    ListAppResponse,
    NameFault,
    Place,
    PublishedPort,
    ReplicaUsage,
    Scheduler,
    Stream,
    StructuredOpts,
    filter_regex,
    split_lines,
    split_lines_iterator,
)
from torchx_tui.backends.types import is_usable
from torchx_tui.backends.workspace import WorkspaceMixin
from torchx_tui.specs import (
    AppDef,
    AppDryRunInfo,
    AppState,
    CfgVal,
    InvalidRunConfigException,
    ReplicaStatus,
    Resource,
    Role,
    RoleStatus,
    SchedulerError,
    runopts,
)


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


class TestStructuredOpts:
    def test_texts_of_both_kinds_of_quotes(self) -> None:
        assert Opts.get_docstrings() == {
            "cluster_name": "Where to run.",
            "num_retries": "How often,\nat most.",
            "hpc_identity": 'Who pays.\n\nSaid in "quotes" too.',
        }
        assert MoreOpts.get_docstrings()["extra"] == "One more."
        assert MoreOpts.get_docstrings()["cluster_name"] == "Where to run."

    def test_as_runopts(self) -> None:
        opts = dict(Opts.as_runopts())
        assert {name: opt.opt_type for name, opt in opts.items()} == {
            "cluster_name": str,
            "num_retries": int,
            "hpc_identity": str,
            "tags": list[str],
            "weight": float,
            "plain": bool,
        }
        assert [name for name, opt in opts.items() if opt.is_required] == ["cluster_name"]
        assert opts["num_retries"].default == 3
        assert opts["tags"].default is None
        assert opts["plain"].help == "plain"
        assert dict(MoreOpts.as_runopts())["extra"].opt_type == dict[str, str]

    def test_without_source_there_are_names_for_texts(self) -> None:
        namespace: dict[str, Any] = {"StructuredOpts": StructuredOpts, "dataclass": dataclass, "__name__": __name__}
        exec("@dataclass\nclass Made(StructuredOpts):\n    queue: str = 'q'\n    '''Lost.'''", namespace)
        assert dict(namespace["Made"].as_runopts())["queue"].default == "q"

    def test_both_spellings(self) -> None:
        opts = Opts.from_cfg({"clusterName": "c", "num_retries": 5, "unknown": 1})
        assert (opts.cluster_name, opts.num_retries, opts.hpc_identity) == ("c", 5, None)
        assert Opts.snake_to_camel("a_bc_d") == "aBcD"
        resolved = Opts.as_runopts().resolve({"clusterName": "c"})
        assert resolved["cluster_name"] == "c"

    def test_options_declared_in_camel_case(self) -> None:
        @dataclass
        class Camel(StructuredOpts):
            jobName: str = "a"
            sendTo: Mail | None = None

        opts = Camel.from_cfg({"job_name": "b", "send_to.user_name": "me"})
        assert (opts.jobName, opts.sendTo, opts["job_name"]) == ("b", Mail("me"), "b")

    def test_groups_and_names_of_their_own(self) -> None:
        known = dict(GroupedOpts.as_runopts())
        assert list(known) == ["mail.user_name", "mail.kind", "mail-type"]
        assert (known["mail.user_name"].is_required, known["mail.user_name"].help) == (True, "Whom to write to.")
        opts = GroupedOpts.from_cfg({"mail.userName": "me", "mail-type": "END"})
        assert (opts.mail, opts.mail_type) == (Mail("me"), "END")
        assert (opts["mail.user_name"], opts["mail-type"], opts["mail_type"]) == ("me", "END", "END")
        assert dict(opts) == {"mail.user_name": "me", "mail.kind": None, "mail-type": "END"}
        assert GroupedOpts.from_cfg({}).mail is None
        # The group's own name says nothing of what is in it.
        assert GroupedOpts.from_cfg({"mail": "x", "mail.kind": "END", "mail.user_name": "me"}).mail == Mail("me", "END")
        assert GroupedOpts.from_cfg({"mail": "x"}).mail is None
        with pytest.raises(KeyError):
            opts["_session"]

    def test_what_is_no_field_is_kept(self) -> None:
        opts = Opts.from_cfg({"cluster_name": "c", "image_repo": "r", "some.thing": 1})
        assert (opts["image_repo"], opts["some.thing"]) == ("r", 1)
        assert (opts == Opts("c"), "image_repo" in Opts("c")) == (True, False)
        assert list(opts)[-2:] == ["image_repo", "some.thing"]

    def test_two_spellings_with_two_values(self) -> None:
        assert Opts.from_cfg({"clusterName": "c", "cluster_name": "c"}).cluster_name == "c"
        with pytest.raises(InvalidRunConfigException, match="`clusterName` and `cluster_name` are one option"):
            Opts.from_cfg({"clusterName": "c", "cluster_name": "d"})

    def test_a_missing_required_option(self) -> None:
        with pytest.raises(TypeError, match="cluster_name"):
            Opts.from_cfg({})

    def test_it_is_a_mapping(self) -> None:
        opts = Opts("c", hpc_identity=None)
        assert isinstance(opts, Mapping)
        assert (opts["cluster_name"], opts["clusterName"]) == ("c", "c")
        assert opts.get("hpc_identity", "nobody") == "nobody"
        assert opts.get("no_such", 1) == 1
        assert "num_retries" in opts
        assert "get" not in opts
        assert 1 not in opts
        assert len(opts) == 6
        assert list(opts)[:2] == ["cluster_name", "num_retries"]
        assert dict(opts)["num_retries"] == 3
        with pytest.raises(KeyError):
            opts["no_such"]

    def test_two_are_merged(self) -> None:
        @dataclass
        class Other(StructuredOpts):
            bar: int = 1
            num_retries: int = 9

        assert (Opts("c") | Other(bar=2)) == {**dict(Opts("c")), "bar": 2, "num_retries": 9}


class Recorder(Scheduler[Mapping[str, CfgVal]]):
    """Does nothing, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__("recorder", "session")
        self.apps: dict[str, AppState] = {}
        self.cancelled: list[str] = []

    def _run_opts(self) -> runopts:
        opts = runopts()
        opts.add("queue", type_=str, default="default", help="where")
        return opts

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Any]:
        return AppDryRunInfo({"name": app.name, **cfg}, str)

    def schedule(self, dryrun_info: AppDryRunInfo[Any]) -> str:
        self.apps[dryrun_info.request["name"]] = AppState.RUNNING
        return dryrun_info.request["name"]

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        return DescribeAppResponse(app_id, self.apps[app_id]) if app_id in self.apps else None

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> builtins.list[ListAppResponse]:
        return [ListAppResponse(app_id, state) for app_id, state in self.apps.items()]

    def _cancel_existing(self, app_id: str) -> None:
        self.cancelled.append(app_id)


class Renaming(Recorder):
    """Changes requests where it is asked for them."""

    def submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Any]:
        info = super().submit_dryrun(app, cfg)
        info.request["name"] += "-renamed"
        return info


class Packer(WorkspaceMixin[Any], Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.built: list[str] = []

    def workspace_opts(self) -> runopts:
        opts = runopts()
        opts.add("image_repo", type_=str, default=None, help="where images go")
        return opts

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        self.built.append(workspace)
        role.image = f"{role.image}+built"


class Greedy(Role):
    def pre_proc(self, scheduler: str, dryrun_info: AppDryRunInfo[Any]) -> AppDryRunInfo[Any]:
        dryrun_info.request["seen_by"] = scheduler
        return dryrun_info


class TestScheduler:
    def test_submit_is_a_dry_run_and_a_schedule(self) -> None:
        scheduler = Recorder()
        assert scheduler.submit(AppDef("app", [Role("r", "i")]), {"queue": "fast"}) == "app"
        info = scheduler.submit_dryrun(AppDef("app", [Greedy("r", "i")]), {})
        assert info.request == {"name": "app", "queue": "default", "seen_by": "recorder"}
        assert info.cfg == {"queue": "default"}
        assert info.app is not None
        with pytest.raises(InvalidRunConfigException):
            scheduler.submit(AppDef("app", [Role("r", "i")]), {"que": "x"})

    def test_submit_calls_an_overridden_dry_run(self) -> None:
        scheduler = Renaming()
        assert scheduler.submit(AppDef("app", [Role("r", "i")]), {}) == "app-renamed"

    def test_the_mixin_says_that_workspaces_are_taken(self) -> None:
        assert Packer().takes_workspace
        assert not Recorder().takes_workspace

    def test_what_does_not_exist_is_left_alone(self) -> None:
        scheduler = Recorder()
        scheduler.cancel("no")
        scheduler.delete("no")
        assert scheduler.cancelled == []
        scheduler.submit(AppDef("app", [Role("r", "i")]), {})
        scheduler.cancel("app")
        scheduler.delete("app")
        assert scheduler.cancelled == ["app", "app"]
        assert scheduler.exists("app")

    def test_a_workspace_needs_the_mixin(self) -> None:
        with pytest.raises(SchedulerError, match="takes no workspace"):
            Recorder().submit(AppDef("app", [Role("r", "i")]), {}, workspace="/tmp")
        scheduler = Packer()
        app = AppDef("app", [Role("r", "i")])
        scheduler.submit(app, {"image_repo": "repo"}, workspace="/tmp")
        assert (app.roles[0].image, scheduler.built) == ("i+built", ["/tmp"])
        assert [name for name, _ in scheduler.run_opts()] == ["queue", "image_repo"]

    def test_defaults(self) -> None:
        scheduler = Recorder()
        assert scheduler.capabilities == Capabilities()
        assert (scheduler.check(), scheduler.preflight(AppDef("a"), {}), scheduler.own_app_ids()) == ([], [], [])
        with pytest.raises(NotImplementedError):
            scheduler.log_iter("a", "r")
        with pytest.raises(NotImplementedError):
            scheduler.describe_native("a")
        with pytest.raises(ValueError, match="No resource for role: r"):
            scheduler._validate(AppDef("a", [Role("r", "i")]), "recorder", {})
        scheduler._validate(AppDef("a", [Role("r", "i", resource=Resource(1, 0, 1))]), "recorder", {})

    def test_rows_can_be_kept_in_sets(self) -> None:
        rows = [ListAppResponse("a", AppState.RUNNING, notes=["x"]) for _ in range(2)]
        assert len({*rows}) == 1
        assert DescribeAppResponse().roles_statuses == []


@pytest.mark.parametrize(
    ("wanted", "told", "counts"),
    [
        ({"a": 2, "b": 0}, {}, {"a": 2, "b": 0}),
        ({"a": 2, "b": 0}, {"a": 3}, {"a": 3, "b": 0}),
        ({"a": 2}, {"a": 1}, {"a": 2}),
        ({"a": 2}, {"a": 1, "step": 4}, {"a": 1, "step": 4}),
    ],
)
def test_how_many_replicas_there_are(wanted: dict[str, int], told: dict[str, int], counts: dict[str, int]) -> None:
    roles = [Role(name, "", num_replicas=number) for name, number in wanted.items()]
    replica = ReplicaStatus(0, AppState.RUNNING, "", "")
    statuses = [RoleStatus(name, [replica] * number) for name, number in told.items()]
    assert DescribeAppResponse(roles=roles, roles_statuses=statuses).replica_counts == counts


@pytest.mark.parametrize("name", ["submitted_at", "started_at", "finished_at", "limit_at"])
@pytest.mark.parametrize(
    ("given", "known"),
    [(0.0, 0.0), (5, 5.0), (1e9, 1e9), (-1.0, None), (3e11, None), (float("nan"), None), ("x", None)],
)
def test_times_of_a_row_that_are_none_are_unknown(name: str, given: Any, known: float | None) -> None:
    row = ListAppResponse("a", AppState.RUNNING, **{name: given})
    assert is_usable(row) is True
    assert getattr(row, name) == known
    assert isinstance(getattr(row, name), float | None)


@pytest.mark.parametrize("app_id", ["", "a\nb", 7, None])
def test_a_row_whose_id_cannot_be_in_a_handle_is_left_out(app_id: Any) -> None:
    assert is_usable(ListAppResponse(app_id, AppState.RUNNING)) is False


class TestLines:
    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            ("", []),
            ("a", ["a"]),
            ("a\n", ["a\n"]),
            ("a\nb", ["a\n", "b"]),
            ("\n\n", ["\n", "\n"]),
            ("a\r\nb\rc\x0bd\u2028e\n", ["a\r\n", "b\rc\x0bd\u2028e\n"]),
        ],
    )
    def test_split(self, text: str, lines: list[str]) -> None:
        assert split_lines(text) == lines

    @given(st.text(alphabet="a\n\r\u2028"))
    def test_nothing_is_lost(self, text: str) -> None:
        lines = split_lines(text)
        assert "".join(lines) == text
        assert all(line.endswith("\n") for line in lines[:-1])
        assert all(line.count("\n") <= 1 and line for line in lines)

    def test_chunks(self) -> None:
        assert list(split_lines_iterator(iter(["a\nb", "c\n"]))) == ["a\n", "b", "c\n"]

    def test_filter(self) -> None:
        lines = filter_regex("b+$", iter(["abb", "bba", "b"]))
        assert list(lines) == ["abb", "b"]


class TestWhatIsNotSaid:
    """What a scheduler says nothing of, one of another package too, is not known, or it cannot do it."""

    def test_of_an_app(self) -> None:
        described = DescribeAppResponse()
        assert (described.app_id, described.state, described.num_restarts) == ("<NOT_SET>", AppState.UNSUBMITTED, -1)
        assert (described.msg, described.structured_error_msg, described.ui_url) == ("<NONE>", "<NONE>", None)
        assert (described.name, described.user, described.host, described.image, described.log_dir) == ("",) * 5
        assert (described.submitted_at, described.started_at, described.finished_at) == (None,) * 3
        assert (described.timeline, described.notes, described.ports, described.roles) == ([], [], [], [])
        assert (described.insight_dir, Finding("ok", "").hint, PublishedPort("r", 0, "", 1, "", 2).command) == ("",) * 3
        assert (described.metadata, described.cfg) == ({}, {})

    def test_of_a_row(self) -> None:
        row = ListAppResponse("a", AppState.RUNNING)
        assert (row.app_handle, row.foreign, row.notes) == ("<NOT_SET>", False, [])
        assert (row.name, row.user, row.image, row.msg, row.host) == ("",) * 5
        assert (row.submitted_at, row.started_at, row.finished_at) == (None,) * 3
        assert (row.replicas_running, row.replicas_wanted, row.replicas_succeeded) == (0, 0, 0)
        assert len({row, ListAppResponse("b", AppState.RUNNING)}) == 2

    def test_of_usage(self) -> None:
        usage = ReplicaUsage("r", 0)
        assert usage.gpus == 0
        assert (usage.cpu, usage.cpu_total, usage.memory, usage.memory_total) == (None,) * 4
        assert (usage.gpu, usage.gpu_memory, usage.gpu_memory_total) == (None,) * 3

    def test_of_an_action(self) -> None:
        action = JobAction("hold", "It is held back.")
        assert (action.value, action.ends_job) == ("", False)

    def test_of_a_place_and_of_another_request(self) -> None:
        place = Place({}, "main")
        assert (place.free, place.nodes, place.gpus_free, place.gpus) == (0, 0, 0, 0)
        assert (place.limit, place.start, place.fault, Alternative({}, None).fault) == (None, None, "", "")

    def test_of_what_it_can_do(self) -> None:
        can = asdict(Capabilities())
        assert can.pop("log_streams") == (Stream.COMBINED,)
        assert can.pop("logs_after_cancel") == ""
        assert {name for name, value in can.items() if value} == {
            *(
                "cancel",
                "delete",
                "log_follow",
                "remembers_cancel",
                "times",
                "exit_codes",
                "replica_counts",
                "named_ids",
            )
        }

    def test_by_a_scheduler(self) -> None:
        scheduler = Recorder()
        assert scheduler.known_values() == {}
        assert scheduler.prune() == []
        assert scheduler.check_names(AppDef("a"), {}) == []
        assert scheduler.image_digests(["i"]) == {}
        assert scheduler.log_path("a", "r", 0, Stream.STDOUT) is None
        assert scheduler.subscribe(lambda: None) is None
        assert (scheduler.context, scheduler.takes_contexts) == ("", True)
        for ask in (scheduler.usage, lambda app_id: scheduler.shell_command(app_id, "r", 0)):
            with pytest.raises(NotImplementedError, match="recorder"):
                ask("a")

    def test_an_end_that_nobody_saw_is_an_end(self) -> None:
        ended = [
            DescribeAppResponse(state=state, finished_at=at).has_ended
            for state, at in ((AppState.UNKNOWN, 1.0), (AppState.UNKNOWN, None), (AppState.RUNNING, 1.0))
        ]
        assert ended == [True, False, False]
        assert DescribeAppResponse(state=AppState.FAILED).has_ended


@pytest.mark.parametrize(
    ("stream", "letter"), [(None, "c"), (Stream.COMBINED, "c"), (Stream.STDOUT, "o"), (Stream.STDERR, "e")]
)
def test_a_stream_made_of_lines_says_which_output_they_are_of(stream: Stream | None, letter: str) -> None:
    scheduler = LinesScheduler()
    scheduler.write(0, "line\n", stream="c" if letter == "c" else letter)
    scheduler.end()
    (record,) = scheduler.log_stream("app", "trainer", 0, stream)
    assert (record.data, record.stream) == (b"line\n", letter)


@pytest.mark.parametrize(("refused", "words"), [(True, "it is long, so be short"), (False, "it is long: be short")])
def test_a_name_that_is_refused_or_changed_in_words(refused: bool, words: str) -> None:
    assert NameFault("", "x", "it is long", "be short", refused).words == words
    assert NameFault("", "x", "", "").what == "The app's name"
    assert NameFault("r", "x", "", "").what == "The role's name"
    assert NameFault("", "x", "", "").refused
