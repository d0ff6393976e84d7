"""Settings: strict reading, and an example file that cannot drift from what there is."""

import dataclasses
import sys
from pathlib import Path

import pytest

from torchx_tui.specs import ConfigError
from torchx_tui.tui.config import Settings, config_path, load_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thmee = 1", "did you mean theme"),
        ("[local]\nmax_runing = 1", "local.max_runing is no setting; did you mean max_running"),
        ("zzz = 1", "known are theme"),
        ('theme = "pink"', "theme"),
        ("ascii = 3", "ascii"),
        ("ascii = ", "no valid TOML"),
        ("local = 3", "local"),
        ('[logs]\nerror_patterns = ["fine", "("]', "logs.error_patterns: ( is no regular expression"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_file_can_be_named_in_the_environment(tmp_path):
    assert config_path({"TORCHX_TUI_CONFIG": "/x/y.toml"}) == Path("/x/y.toml")


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
    data = tomllib.loads(EXAMPLE.read_text())
    assert set(toml_names(data)) == set(settings_names(Settings))
    assert load_settings(EXAMPLE) == Settings()


@pytest.mark.parametrize("frames", [-1, 1, 29, 241])
def test_frames_so_few_that_keys_seem_slow_are_refused(tmp_path, frames):
    with pytest.raises(ConfigError, match="from 30 to 240"):
        load_settings(write(tmp_path, f"frames_per_second = {frames}\n"))
