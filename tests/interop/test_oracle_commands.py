"""What the commands print for programs, and what they print for people, held against TorchX's own command."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.builtin_calls import calls
from interop.component_calls import built_by_them, built_by_us
from interop.oracle import cases, hold, names_of, outcome, plain, theirs
from interop.plain_data import NOT_EVERYWHERE, built_status, less_new
from interop.release_questions import STATUSES

import torchx_tui.specs as our_specs
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import DescribeAppResponse, ListAppResponse
from torchx_tui.cli import status as watch
from torchx_tui.cli.main import main

AREA = "commands"
HANDLES = st.sampled_from(["local_cwd://torchx/job-x1", "local_cwd:///job", "kubernetes://torchx/default:job"])
FAILED = "the command failed"
# What the Runner sets for every job, and differs from run to run.
OF_THE_RUN = ("TORCHX_INTERNAL_SESSION_ID", "TORCHX_JOB_ID")


@pytest.fixture(autouse=True)
def folder_of_its_own(torchx: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGLEVEL", "CRITICAL")


def printed_by_them(*argv: str) -> str:
    """Return what `torchx` prints on stdout; that it failed, where it does."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            theirs("torchx.cli.main").main(list(argv))
    except (Exception, SystemExit) as ended:
        return FAILED if not isinstance(ended, SystemExit) or ended.code else out.getvalue()
    return out.getvalue()


def printed_by_us(*argv: str) -> str:
    """Return what `torchx-tui` prints on stdout; that it failed, where it does."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = main(list(argv))
    except SystemExit as ended:
        code = ended.code
    return FAILED if code else out.getvalue()


def read(printed: str) -> Any:
    return printed if printed == FAILED else json.loads(printed)


@given(STATUSES, HANDLES, st.sampled_from([(), ("--roles", "ps"), ("--roles=ps,trainer",), ("--roles=",)]))
@cases(300)
def test_status(status: dict[str, Any], handle: str, roles: tuple[str, ...]) -> None:
    their_status = built_status(theirs("torchx.specs"), status)
    ours = built_status(our_specs, status)
    found = DescribeAppResponse(
        "job",
        ours.state,
        ours.num_restarts,
        ours.msg,
        ours.structured_error_msg,
        ours.ui_url,
        roles_statuses=ours.roles,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs("torchx.runner.api").Runner, "status", lambda _self, _handle: their_status)
        patch.setattr(watch, "described", lambda _runner, _handle: found)
        for flags in (["--json"], []):
            argv = ["status", *flags, *roles, handle]
            their_text, our_text = printed_by_them(*argv), printed_by_us(*argv)
            if flags:
                their_text, our_text = read(their_text), read(our_text)
            hold(AREA, their_text, our_text, lambda *_: None, (argv, status))


LISTED = st.lists(st.tuples(HANDLES, st.sampled_from(["", "job", "a b"]), st.integers(0, 7)), max_size=4)


@given(LISTED)
@cases(150)
def test_list(listed: list[tuple[str, str, int]]) -> None:
    def rows(specs: Any, response: Any) -> list[Any]:
        return [response("job", specs.AppState(state), handle, name) for handle, name, state in listed]

    their_rows = rows(theirs("torchx.specs"), theirs("torchx.schedulers.api").ListAppResponse)
    our_rows = rows(our_specs, ListAppResponse)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs("torchx.runner.api").Runner, "list", lambda *_: their_rows)
        patch.setattr(Runner, "list", lambda *_: our_rows)
        their_table, our_table = (table(run("list", "-s", "local_cwd")) for run in (printed_by_them, printed_by_us))
    hold(AREA, their_table, our_table, lambda *_: None, listed)


def table(printed: str) -> Any:
    """Return the cells of each row that is no rule."""
    return [line.split() for line in printed.splitlines() if not re.fullmatch(r"[-\s]*", line)]


@given(
    calls(), st.sampled_from([(), ("-cfg", "log_dir=/x"), ("-cfg", "prepend_cwd=yes,logDir=/x"), ("-cfg", "nope=1")])
)
@cases(300)
@pytest.mark.filterwarnings("ignore")
def test_dryrun(call: tuple[str, list[str]], cfg: tuple[str, ...]) -> None:
    name, words = call
    argv = ["run", "-s", "local_cwd", *cfg, "--dryrun", "--json", "--workspace=", name, *words]
    their_made, our_made = read(printed_by_them(*argv)), read(printed_by_us(*argv))

    def explain(_their: Any, our: Any) -> str | None:
        return "names that are no folder's" if our == FAILED and is_path(words) else component_differs(name, words)

    hold(AREA, in_common(their_made), in_common(our_made), explain, argv)


def is_path(words: list[str]) -> bool:
    """Return whether an app's name would be more than one folder, or none."""
    return any(word.startswith("--name=") and ("/" in word or word == "--name=") for word in words)


def in_common(made: Any) -> Any:
    """Return a dry run's JSON less what only one has, or what differs from run to run."""
    if made == FAILED:
        return made
    assert set(made) == {"scheduler", "cfg", "app", "request"}
    app, request = made["app"], made["request"]
    for role in app["roles"]:
        for field in NOT_EVERYWHERE["Role"]:
            role.pop(field, None)
        role["image"] = re.sub("torchx:.*", "torchx", role["image"])
        role["env"] = {key: text for key, text in sorted(role["env"].items()) if key not in OF_THE_RUN}
    return json.loads(
        json.dumps({**made, "app": app, "request": sorted(set(request) - {"private", "insight"})}, sort_keys=True)
    )


def component_differs(name: str, words: list[str]) -> str | None:
    """Return the entry of AppDefs that differ before a command has anything to do with them."""
    made = [outcome(lambda build=build: less_new(plain(build(name, words)))) for build in (built_by_them, built_by_us)]
    texts = [re.sub('torchx:[^"]*', "torchx", json.dumps(one, sort_keys=True, default=repr)) for one in made]
    return "builtin components" if texts[0] != texts[1] else None


@pytest.mark.parametrize(
    "argv",
    [("runopts", "local_cwd"), ("configure", "--print", "-s", "local_cwd"),
     ("configure", "--print", "-a", "-s", "local_cwd"), ("configure", "--print", "-s", "kubernetes")],
    ids=" ".join,
)  # fmt: skip
def test_printed_alike(argv: tuple[str, ...]) -> None:
    their_text, our_text = printed_by_them(*argv), printed_by_us(*argv)
    assert FAILED not in (their_text, our_text)
    # TorchX shows the scheduler's name in green, where nobody looks too.
    hold(AREA, re.sub(r"\x1b\[\d*m", "", their_text).strip(), our_text.strip(), lambda *_: None, argv)


def test_flags_of_run_are_theirs() -> None:
    their_text, our_text = (run("run", "--help") for run in (printed_by_them, printed_by_us))
    for flag in ("--scheduler", "-cfg", "--scheduler_args", "--dryrun", "--wait", "--log", "--workspace",
                 "--buck-target", "--parent_run_id", "--tee_logs", "--stdin", "--json"):  # fmt: skip
        assert flag in their_text
        assert flag in our_text


STDIN = [
    {"component_name": "utils.echo", "component_args": {"msg": "hi", "mgs": 1, "num_replicas": 2}},
    {"component_name": "utils.sh", "component_args": {"args": ["echo", "a b"], "cpu": 3}},
    {"component_name": "utils.sh", "component_args_str": ["--cpu", "3", "--", "echo", "a b"]},
]


@pytest.mark.parametrize("flags", [(), ("-s", "local_docker")], ids=" ".join)
@pytest.mark.parametrize("data", STDIN)
def test_stdin_is_read_alike(data: dict[str, Any], flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({**data, "scheduler": "local_cwd", "scheduler_args": {}})
    made = []
    for run in (printed_by_them, printed_by_us):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        made.append(in_common(read(run("run", *flags, "--stdin", "--dryrun", "--json"))))
    assert FAILED not in made
    assert made[0]["app"] == made[1]["app"]


@pytest.mark.parametrize(
    ("config", "named"), [("", "kubernetes"), ("[cli:run]\nscheduler = kubernetes\n", "local_docker")]
)
def test_another_scheduler_beside_stdin_is_refused_alike(
    config: str, named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".torchxconfig").write_text(config)
    monkeypatch.setenv("TORCHXCONFIG", str(tmp_path / ".torchxconfig"))
    theirs("torchx.cli.argparse_util").torchxconfig._subcmd_configs.clear()
    for run in (printed_by_them, printed_by_us):
        monkeypatch.setattr(
            "sys.stdin", io.StringIO(json.dumps({**STDIN[0], "scheduler": "local_cwd", "scheduler_args": {}}))
        )
        assert run("run", "-s", named, "--stdin", "--dryrun", "--json") == FAILED
    theirs("torchx.cli.argparse_util").torchxconfig._subcmd_configs.clear()


def test_words_in_config_are_split_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / ".torchxconfig"
    config.write_text("[component:utils.sh]\nargs = echo 'a  b' \"c\\d\"\ncpu = 3\n")
    monkeypatch.setenv("TORCHXCONFIG", str(config))
    argv = ["run", "-s", "local_cwd", "--dryrun", "--json", "--workspace=", "utils.sh"]
    their_made, our_made = in_common(read(printed_by_them(*argv))), in_common(read(printed_by_us(*argv)))
    assert their_made["app"]["roles"][0]["args"] == ["-c", "echo ''\"'\"'a' 'b'\"'\"'' '\"c\\d\"'"]
    assert our_made["app"] == their_made["app"]


def test_builtins() -> None:
    def names(printed: str) -> set[str]:
        return set(re.findall(r"^ +\d+\. (\S+)", printed, re.MULTILINE))

    their_names, our_names = (names(run("builtins")) for run in (printed_by_them, printed_by_us))
    assert their_names - our_names == {"utils.hydra"}
    assert our_names - their_names == {"demo.train"}


EXAMPLES = {
    "names that are no folder's": ("utils.python", "--name=a/b", "--m=x"),
    "builtin components": ("utils.sh", "--cpu=0", "ls"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_difference_is_there(name: str) -> None:
    argv = ["run", "-s", "local_cwd", "--dryrun", "--json", "--workspace=", *EXAMPLES[name]]
    their_made, our_made = read(printed_by_them(*argv)), read(printed_by_us(*argv))
    assert their_made != FAILED
    assert (our_made == FAILED) == (name != "builtin components")
    assert in_common(their_made) != in_common(our_made)


def test_no_example_is_left_over() -> None:
    assert {*EXAMPLES, "the components that there are"} == set(names_of(AREA))
