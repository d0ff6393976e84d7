"""`.torchxconfig` compared with TorchX's: which files count, what they say, what is written, hostile files too."""

import contextlib
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from interop.oracle import WORDS, Refused, cases, check_example, each_difference, hold, outcome, theirs
from support import torchxconfig

import torchx_tui.specs as our_specs
from torchx_tui.backends import registry
from torchx_tui.backends.torchxconfig import dump, find_configs

pytestmark = pytest.mark.usefixtures("torchx")

AREA = "torchxconfig"
KINDS = {
    "log_dir": str, "count": int, "ratio": float, "quiet": bool, "tags": list[str], "env": dict[str, str],
    "max_time": str,
}  # fmt: skip
KEYS = [*KINDS, "logDir", "maxTime", "unknown", "J"]
SECTIONS, VALUES, HOSTILE = (st.sampled_from(WORDS[AREA][kind]) for kind in ("sections", "values", "hostile"))
LINES = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(KEYS), VALUES),
    st.builds("{}: {}".format, st.sampled_from(KEYS), VALUES),
    SECTIONS,
)
# Most files are well-formed; a line of some is not.
TEXTS = st.builds(
    lambda first, lines, odd: "\n".join([first, *lines, *odd]),
    SECTIONS, st.lists(LINES, max_size=5, unique=True),
    st.one_of(st.just([]), st.just([]), st.lists(HOSTILE, max_size=1)),
)  # fmt: skip
PLACES = st.fixed_dictionaries({}, optional=dict.fromkeys(["home", "cwd", "other"], TEXTS))
NAMED = st.sampled_from([None, None, None, "", "other/.torchxconfig", "missing"])
DIRS = st.sampled_from([None, [], ["other"], ["other", "cwd"], ["cwd", "other", "cwd"], ["nowhere", "home"]])
CFGS = st.sampled_from([{}, {"log_dir": "given"}, {"logDir": "given"}, {"count": 9, "quiet": True}])
DEFAULTS = {
    str: [None, "x", "", "a b", "50%", "None"], int: [None, 3], float: [None, 0.5], bool: [None, True, False],
    list[str]: [None, [], ["a"], ["a", "b"], ["a;b"]], dict[str, str]: [None, {}, {"A": "1", "B": "2"}, {"A": "x:y"}],
}  # fmt: skip
OPTION = st.sampled_from(list(KINDS)).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(DEFAULTS[KINDS[name]]), st.booleans())
)
OPTIONS = st.lists(OPTION, min_size=1, max_size=4, unique_by=lambda one: one[0])
EVERY = [(name, None, False) for name in KINDS]


class OneScheduler:
    """Has options: of each the name, the default and whether it is required."""

    def __init__(self, specs, options):
        self.options = specs.runopts()
        for name, default, required in options:
            self.options.add(name, type_=KINDS[name], help=f"what {name} is", default=default, required=required)

    def run_opts(self):
        return self.options

    def close(self):
        pass


class Ours:
    """Our functions by TorchX's names, with the options of one scheduler."""

    find_configs = staticmethod(find_configs)
    load_sections = staticmethod(torchxconfig.load_sections)

    def __init__(self):
        self.known = our_specs.runopts()

    def apply(self, scheduler, cfg, dirs=None):
        torchxconfig.apply(scheduler, cfg, self.known, dirs)

    def dump(self, file, schedulers, required_only):
        dump(file, schedulers, required_only)


class World:
    """Home, current folder and another one with their files, TorchX's module and ours, each with one scheduler."""

    def __init__(self, folder):
        self.folder = folder
        self.modules = theirs("torchx.runner.config"), Ours()

    @contextlib.contextmanager
    def holds(self, files, named=None, options=EVERY):
        """Write files, and name one in TORCHXCONFIG unless `named` is None."""
        for place in ("home", "cwd", "other"):
            (self.folder / place).mkdir(exist_ok=True)
            (self.folder / place / ".torchxconfig").unlink(missing_ok=True)
            if place in files:
                (self.folder / place / ".torchxconfig").write_text(files[place], encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            config = self.modules[0]
            patch.setattr(config, "DEFAULT_CONFIG_DIRS", self.paths(["home", "cwd"]))
            patch.setattr(config, "_get_scheduler", lambda _: OneScheduler(theirs(), options))
            ours = OneScheduler(our_specs, options)
            self.modules[1].known = ours.run_opts()
            patch.setattr(registry, "create_scheduler", lambda *_: ours)
            patch.setenv("HOME", str(self.folder / "home"))
            patch.chdir(self.folder / "cwd")
            if named is None:
                patch.delenv("TORCHXCONFIG", raising=False)
            else:
                patch.setenv("TORCHXCONFIG", str(self.folder / named) if named else "")
            yield

    def paths(self, places):
        return places and [str(self.folder / place) for place in places]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def applied(config, cfg, dirs=None):
    made = dict(cfg)
    config.apply("sched", made, dirs)
    return made


def dumped(config, required_only=False):
    file = io.StringIO()
    config.dump(file, ["sched"], required_only)
    return file.getvalue()


def asked(config, dirs, cfg):
    """Return all that the files answer."""
    return [
        outcome(lambda: config.find_configs(dirs)),
        *(outcome(lambda one=one: config.load_sections(one, dirs)) for one in ("component", "cli", "a", "")),
        outcome(lambda: applied(config, cfg, dirs)),
    ]


@given(PLACES, NAMED, DIRS, CFGS)
@example({"home": "[sched]\ncount = 1", "cwd": "[sched]\nquiet = 1"}, None, [], {})
@example({"home": "[:x]\nJ = 1\n[component:]\nJ = 1"}, None, None, {})
@example({"other": "[DEFAULT]\nJ = 1\n[cli:run]\nlog_dir = x"}, None, ["other"], {})
@example({"cwd": "[cli:run]\nJ = 1\ncount = 2", "other": "[cli:run]\nquiet = 3\nJ = 4"}, None, ["other", "cwd"], {})
@example({"home": "[sched]\nenv = x\nlog_dir = 100%"}, None, None, {})
@example({"home": "[sched]\nlog_dir = None"}, None, None, {})
@cases(700)
def test_files(world, files, named, dirs, cfg):
    with world.holds(files, named):
        answers = [asked(module, world.paths(dirs), cfg) for module in world.modules]

    def explain(their, our):
        if isinstance(their, Refused) and their.names[0] == "FileNotFoundError":
            return "a file that is missing"
        if isinstance(their, list) and len(set(their)) < len(their):
            return "a folder twice"
        fault = text_fault("\n".join(files.values()), cfg, their, our)
        return fault or ("the project's file" if named is None and not dirs else None)

    for their, our in zip(*answers, strict=True):
        hold(AREA, their, our, explain, (files, named, dirs, cfg))


def text_fault(said, cfg, their, our):
    """Return the entry that the text of files falls under, None where it is as usual."""
    no_pair = isinstance(their, Refused) and their.names[0] == "IndexError"
    if isinstance(our, Refused):
        if no_pair:
            return "quotes in lists and dicts"  # and ours refuses a line below it
        if "%" in str(our.error):
            return "a lone %"
        if isinstance(their, Refused) and their.names[0] == "InvalidRunConfigException":
            return "two spellings"
        return "quotes in lists and dicts" if re.search("to_type|pair|list|dict", str(our.error)) else None
    if re.search("log_dir|logDir", said) and "logDir" in cfg:
        return "given in another spelling"
    if "#FIXME" in said and (isinstance(their, Refused) or "#FIXME" in repr(their)):
        return "what is to be filled in"
    quoted = re.search(r"(env|tags)\s*[=:].*'", said)
    return "quotes in lists and dicts" if no_pair or quoted else None


@given(TEXTS, CFGS)
@cases(1000)
def test_loading(world, text, cfg):
    with world.holds({"cwd": text}):
        their, our = (outcome(lambda one=one: applied(one, cfg)) for one in world.modules)
    hold(AREA, their, our, lambda their, our: text_fault(text, cfg, their, our), (text, cfg))


@given(OPTIONS, st.booleans())
@cases(800)
def test_writing(world, options, required_only):
    declared = [(name, None if required else default, required) for name, default, required in options]

    def explain(their, our):
        defaults = [default for _, default, _ in declared]
        if "50%" in defaults:
            return "a % that is written"
        return "separators in what is written" if ["a;b"] in defaults or {"A": "x:y"} in defaults else None

    with world.holds({}, options=declared):
        their, our = (outcome(lambda one=one: dumped(one, required_only)) for one in world.modules)
    hold(AREA, their, our, explain, (options, required_only))


@each_difference(AREA)
def test_each_difference_is_there(world, difference):
    def names(module):
        def apply(text, **cfg):
            with world.holds({"home": "[sched]\nlog_dir = home", "cwd": f"[sched]\n{text}"}):
                return applied(module, cfg)

        def write(name, default):
            with world.holds({}, options=[(name, default, False)]):
                return dumped(module).splitlines()[1]

        def find(*dirs, named=None):
            with world.holds({"cwd": "[sched]"}, named):
                return module.find_configs(world.paths(dirs) or None)

        return {"applied": apply, "written": write, "found": find}

    check_example(difference, names, world.modules)
