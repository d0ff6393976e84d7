"""Pictures of the picker: what is pinned and was launched lately, and a component with findings."""

import pytest
from support.canned import DAY, HOUR, MINUTE
from support.past_launches import launched
from support.pictures import SIZES
from support.screens import table_of

FAULTY = '''
def trainer(script: str, nodes=2, tags: set[str] = ()) -> AppDef:
    """Train on some nodes.

    Args:
        script: what to run
        nodes: how many machines
        tags: words for the search
    """

def evaluate(data: str) -> AppDef: ...
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


async def picker_of(pilot):
    return await (await table_of(pilot, 1)).picker()


def test_pinned_and_launched_lately(snap_compare, app, here):
    (here / "jobs.py").write_text(FAULTY)
    journal = app.runner.journal
    launched(journal, "jobs.py:evaluate", 3 * DAY, "SUCCEEDED", app_id="evaluate-h3v9q1zj6pcx0d")
    launched(journal, "utils.echo", 5 * HOUR, "CANCELLED", app_id="echo-c1j6t9k3x5vz8m")
    launched(journal, "dist.ddp", HOUR, "FAILED", app_id="llama3-8b-sft-b7n1xk4t9wz0rg")
    launched(journal, "utils.sh", 41 * MINUTE, "RUNNING", app_id="sh-zq2wmx7v5hkdfd")
    app.ui_state.change(pinned=("dist.spmd", "dist.ddp"))

    async def run_before(pilot):
        picker = await picker_of(pilot)
        await picker.press("down", shows="Launched 1 time", on="docs")

    assert snap_compare(app, sizes=SIZES, run_before=run_before)


def test_component_with_findings(snap_compare, app, here):
    (here / "jobs.py").write_text(FAULTY)

    async def run_before(pilot):
        picker = await picker_of(pilot)
        await picker.press(*"trainer", shows="cannot be used", on="docs")

    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=run_before)
