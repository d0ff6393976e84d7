"""Base class for tests of components, as in `torchx.components.component_test_base`."""

from __future__ import annotations

import inspect
import unittest
from types import ModuleType

from .finder import describe


class ComponentTestCase(unittest.TestCase):
    """Base class for tests of components."""

    def validate(self, module: ModuleType, function_name: str) -> None:
        """Fail unless a function of a module is a component that can be launched."""
        file = inspect.getsourcefile(getattr(module, function_name))
        describe(f"{file}:{function_name}")
