"""Settings: strict reading, and an example file that cannot drift from what there is."""

import dataclasses
from pathlib import Path

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app, until
from support.tables import toml_table

from torchx_tui.base.errors import ConfigError
from torchx_tui.settings.config import Settings, load_settings, load_settings_lenient

ROWS = toml_table(Path(__file__).with_name("config.toml"))

PROFILE = '[profiles.p]\nscheduler = "local_cwd"\n'
EXAMPLE = Path(__file__).parents[2] / "config.example.toml"


def write(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_no_file_gives_the_defaults():
    assert load_settings() == Settings()


def test_values_are_taken(tmp_path):
    settings = load_settings(write(tmp_path, 'theme = "torchx-light"\n[local]\nmax_running = 2\n'))
    assert (settings.theme, settings.local.max_running) == ("torchx-light", 2)
    assert settings.scheduler_params()["local_cwd"]["max_running"] == 2


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('\ufefftheme = "torchx-light"\n', encoding="utf-8")
    assert load_settings(path).theme == "torchx-light"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *ROWS["mistakes"],
        *((f"frames_per_second = {frames}", "from 30 to 240") for frames in (-1, 1, 29, 241)),
        (f'[launch]\nprofile = "q"\n{PROFILE}', "launch.profile: q is not a profile; there are p"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def settings_names(kind, prefix=""):
    for field in dataclasses.fields(kind):
        default = getattr(kind(), field.name)
        if dataclasses.is_dataclass(default):
            yield from settings_names(type(default), f"{field.name}.")
        else:
            yield prefix + field.name


def toml_names(data, prefix=""):
    for name, value in data.items():
        if isinstance(value, dict) and value:
            yield from toml_names(value, f"{name}.")
        else:
            yield prefix + name


def test_the_example_has_every_setting_at_its_default():
    data = toml_table(EXAMPLE)
    assert set(toml_names(data)) == set(settings_names(Settings))
    assert load_settings(EXAMPLE) == Settings()


def test_spaces_between_keys_are_accepted(tmp_path):
    settings = load_settings(write(tmp_path, '[keys]\n"logs.bottom" = "f, G"\n'))
    assert settings.keys == {"logs.bottom": "f,G"}


def test_a_file_that_was_named_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHX_TUI_CONFIG", str(tmp_path / "gone.toml"))
    with pytest.raises(ConfigError, match=r"gone\.toml does not exist"):
        load_settings()
    settings, problem = load_settings_lenient()
    assert settings == Settings()
    assert problem.endswith("; the defaults are used")


def test_of_a_broken_file_the_rest_holds(tmp_path, monkeypatch):
    text = f'[launch]\nprofile = "p"\nmost_of_a_sweep = "many"\n[local]\nmax_runing = 1\ngrace_seconds = 3.0\n{PROFILE}'
    path = write(tmp_path, f'read_only = true\nthmee = "pink"\n{text}')
    monkeypatch.setenv("TORCHX_TUI_CONFIG", str(path))
    settings, problem = load_settings_lenient()
    faults = (
        "thmee is not a setting; did you mean theme?",
        "launch.most_of_a_sweep: Expected `int`, got `str`",
        "local.max_runing is not a setting; did you mean max_running?",
    )
    assert problem == f"{path}: {'; '.join(faults)}; the rest of the file is used"
    assert settings.read_only
    assert (settings.launch.profile, settings.launch.most_of_a_sweep) == ("p", 64)
    assert settings.local.grace_seconds == 3.0


@pytest.mark.parametrize("recovers", [False, True])
async def test_config_error_stays_when_a_backend_fails(tmp_path, recovers):
    """The backend's fault is told with the next key, unless it is over by then."""
    scheduler = CannedScheduler()
    scheduler.error = OSError("the disk is gone")
    app = make_app(scheduler, tmp_path)
    app._problem = "thmee is not a setting"
    # One that never answered is not set up here: it is grey, without a message.
    app.jobs.answered_before = frozenset({"local_cwd"})
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.jobs.outages, "the outage")
        assert "thmee is not a setting" in app.status.message
        if recovers:
            scheduler.error = None
            app.feed.refresh()
            await until(pilot, lambda: not app.jobs.outages, "its end")
            assert "thmee is not a setting" in app.status.message
        await pilot.press("j")
        assert "thmee" not in app.status.message
        assert ("the disk is gone" in app.status.message) is not recovers
