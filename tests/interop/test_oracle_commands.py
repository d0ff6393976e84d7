"""What the commands print, for programs and for people, compared with TorchX's own command."""

import contextlib
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interop.builtin_calls import calls
from interop.component_calls import built_from
from interop.oracle import cases, check_example, compare, each_difference, outcome, theirs
from interop.plain_data import fields_of
from interop.statuses import STATUSES, built_status

import torchx_tui.specs as our_specs
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import DescribeAppResponse, ListAppResponse
from torchx_tui.cli import status as watch
from torchx_tui.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore")

AREA = "commands"
HANDLES = st.sampled_from(["local_cwd://torchx/job-x1", "local_cwd:///job", "kubernetes://torchx/default:job"])
FAILED = "failed"
DRYRUN = ["run", "-s", "local_cwd", "--dryrun", "--json", "--workspace="]


@pytest.fixture(autouse=True)
def folder_of_its_own(torchx, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGLEVEL", "CRITICAL")
    theirs("torchx.cli.argparse_util").torchxconfig._subcmd_configs.clear()
    yield
    theirs("torchx.cli.argparse_util").torchxconfig._subcmd_configs.clear()


def printed(specs, *argv):
    """Return what the command of a package prints on stdout, or FAILED."""
    command = main if specs is our_specs else theirs("torchx.cli.main").main
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = command(list(argv))
        except SystemExit as ended:
            code = ended.code
        except Exception:
            code = 1
    return FAILED if code else out.getvalue()


def read(specs, *argv):
    text = printed(specs, *argv)
    return text if text == FAILED else json.loads(text)


@given(STATUSES, HANDLES, st.sampled_from([[], ["--roles", "ps"], ["--roles=ps,trainer"], ["--roles="]]))
@cases(300)
def test_status(status, handle, roles):
    state, restarts, message, *rest = status
    status = (state, restarts, message.replace("\n", " "), *rest)  # a message of ours is one line
    our = built_status(our_specs, status)
    found = DescribeAppResponse(
        "job", our.state, our.num_restarts, our.msg, our.structured_error_msg, our.ui_url, roles_statuses=our.roles
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs("torchx.runner.api").Runner, "status", lambda *_: built_status(theirs(), status))
        patch.setattr(watch, "describe_job", lambda *_: found)
        compare(AREA, lambda specs: read(specs, "status", "--json", *roles, handle), case=status)
        compare(AREA, lambda specs: printed(specs, "status", *roles, handle), case=status)


@given(st.lists(st.tuples(HANDLES, st.sampled_from(["", "job", "a b"]), st.integers(0, 7)), max_size=4))
@cases(150)
def test_list(listed):
    def rows(specs, response):
        return [response("job", specs.AppState(state), handle, name) for handle, name, state in listed]

    def table(specs):
        """Return the cells of each row that is no rule."""
        lines = printed(specs, "list", "-s", "local_cwd").splitlines()
        return [line.split() for line in lines if not re.fullmatch(r"[-\s]*", line)]

    their_rows = rows(theirs(), theirs("torchx.schedulers.api").ListAppResponse)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theirs("torchx.runner.api").Runner, "list", lambda *_: their_rows)
        patch.setattr(Runner, "list", lambda *_: rows(our_specs, ListAppResponse))
        compare(AREA, table, case=listed)


CFGS = st.sampled_from([[], ["-cfg", "log_dir=/x"], ["-cfg", "prepend_cwd=yes,logDir=/x"], ["-cfg", "nope=1"]])


@given(calls(), CFGS)
@cases(300)
def test_dryrun(call, cfg):
    name, words = call

    def explain(their, our):
        # The app's name would be more than one folder, or none.
        if our == FAILED and any(word.startswith("--name=") and ("/" in word or word == "--name=") for word in words):
            return "names that are no folder's"
        return "builtin components" if component_differs(name, words) else None

    compare(AREA, lambda specs: in_common(read(specs, *DRYRUN, *cfg, name, *words)), explain, (name, words, cfg))


def in_common(made) -> Any:
    """Return a dry run's JSON less what only ours has, or what differs from run to run."""
    if made == FAILED:
        return made
    assert set(made) == {"scheduler", "cfg", "app", "request"}
    for role in made["app"]["roles"]:
        for field in ("base_image", "overrides", "workspace"):
            role.pop(field, None)
        role["image"] = without_version(role["image"])
        for name in ("TORCHX_INTERNAL_SESSION_ID", "TORCHX_JOB_ID"):
            role["env"].pop(name, None)
    made["request"] = sorted(set(made["request"]) - {"private", "insight"})
    return json.loads(json.dumps(made, sort_keys=True))


def without_version(text):
    return re.sub("torchx:[^\"']*", "torchx", text)


def component_differs(name, words):
    """Return whether the AppDefs of a component differ, whatever a command does with them."""
    made = [outcome(lambda specs=specs: fields_of(built_from(specs, name, words))) for specs in (theirs(), our_specs)]
    return without_version(repr(made[0])) != without_version(repr(made[1]))


@pytest.mark.parametrize(
    "argv",
    ["runopts local_cwd", "configure --print -s local_cwd", "configure --print -a -s local_cwd"],
)  # fmt: skip
def test_printed_alike(argv):
    their, our = (printed(specs, *argv.split()) for specs in (theirs(), our_specs))
    # TorchX prints the scheduler's name in green, to files too.
    assert our.strip() == re.sub(r"\x1b\[\d*m", "", their).strip() != FAILED


def test_run_has_the_same_flags():
    their, our = (
        set(re.findall(r"(?<!\S)--[a-z_-]+", printed(specs, "run", "--help"))) for specs in (theirs(), our_specs)
    )
    assert len(their) >= 11
    assert their <= our


LOCAL = {"scheduler": "local_cwd", "scheduler_args": {}}
STDIN = [
    {"component_name": "utils.echo", "component_args": {"msg": "hi", "mgs": 1, "num_replicas": 2}},
    {"component_name": "utils.sh", "component_args": {"args": ["echo", "a b"], "cpu": 3}},
    {"component_name": "utils.sh", "component_args_str": ["--cpu", "3", "--", "echo", "a b"]},
]


@pytest.fixture
def from_stdin(monkeypatch):
    """Return a function that makes a dry run of what is given on stdin."""

    def run(specs, data, *flags):
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**data, **LOCAL})))
        return in_common(read(specs, "run", *flags, "--stdin", "--dryrun", "--json"))

    return run


@pytest.mark.parametrize("flags", [(), ("-s", "local_docker")], ids=" ".join)
@pytest.mark.parametrize("data", STDIN)
def test_stdin_is_read_alike(from_stdin, data, flags):
    their, our = (from_stdin(specs, data, *flags) for specs in (theirs(), our_specs))
    assert FAILED not in (their, our)
    assert their["app"] == our["app"]


@pytest.mark.parametrize(
    ("config", "named"), [("", "kubernetes"), ("[cli:run]\nscheduler = kubernetes\n", "local_docker")]
)
def test_another_scheduler_beside_stdin_is_refused_alike(from_stdin, config, named, monkeypatch, tmp_path):
    (tmp_path / ".torchxconfig").write_text(config)
    monkeypatch.setenv("TORCHXCONFIG", str(tmp_path / ".torchxconfig"))
    assert [from_stdin(specs, STDIN[0], "-s", named) for specs in (theirs(), our_specs)] == [FAILED, FAILED]


def test_words_in_config_are_split_alike(monkeypatch, tmp_path):
    config = tmp_path / ".torchxconfig"
    config.write_text("[component:utils.sh]\nargs = echo 'a  b' \"c\\d\"\ncpu = 3\n")
    monkeypatch.setenv("TORCHXCONFIG", str(config))
    their, our = (in_common(read(specs, *DRYRUN, "utils.sh")) for specs in (theirs(), our_specs))
    assert their["app"]["roles"][0]["args"] == ["-c", "echo ''\"'\"'a' 'b'\"'\"'' '\"c\\d\"'"]
    assert our["app"] == their["app"]


def builtins(specs):
    return set(re.findall(r"^ +\d+\. (\S+)", printed(specs, "builtins"), re.MULTILINE))


def test_all_other_builtins_are_listed():
    assert builtins(theirs()) ^ builtins(our_specs) == {"utils.hydra", "demo.train"}


@each_difference(AREA)
def test_each_difference_is_there(difference):
    def names(specs):
        return {"dryrun": lambda *argv: read(specs, *DRYRUN, *argv), "builtins": lambda: builtins(specs)}

    check_example(difference, names)
