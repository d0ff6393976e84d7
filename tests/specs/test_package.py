"""The package's face: what it exports, and what importing it costs."""

import json
import subprocess
import sys
from pathlib import Path

from support.waiting import PATIENCE

import torchx_tui.specs as specs

LOADED = """
import json, sys
before = set(sys.modules)
import torchx_tui.specs
from torchx_tui.specs import AppState, AppDef, runopts
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_every_name_is_there():
    for name in specs.__all__:
        assert getattr(specs, name) is not None
    assert set(specs.__all__) <= set(dir(specs))


def test_no_module_hides_an_export():
    modules = {path.stem for path in Path(str(specs.__file__)).parent.glob("*.py")}
    assert modules.isdisjoint(specs.__all__)


def test_importing_is_cheap():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=PATIENCE)
    loaded = set(json.loads(done.stdout))
    assert loaded.isdisjoint({"yaml", "importlib.metadata", "asyncio", "datetime", "concurrent.futures"})
    assert "torchx_tui.specs.named_resources_aws" not in loaded
