"""YAML for people to read: in the order given, programs and other long texts as blocks instead of one escaped line."""

from __future__ import annotations

from functools import cache
from typing import Any

from .progress import current_progress


@cache
def _dumper() -> type[Any]:
    import yaml

    # libyaml's emitter, where PyYAML was built with it, is ten times as fast as the one in Python.
    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class ReadableDumper(base):
        """A safe dumper that writes texts of several lines as literal blocks."""

        def ignore_aliases(self, data: Any) -> bool:
            """Write equal values out each time: nobody reads anchors."""
            del data
            return True

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        current_progress().check()
        # Bytes of arguments and labels that are no UTF-8, which libyaml does not take.
        text = text.encode(errors="backslashreplace").decode()
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    ReadableDumper.add_representer(str, represent_text)
    return ReadableDumper


def readable_yaml(data: Any) -> str:
    """Return plain data (mappings, sequences, texts, numbers) as YAML.

    Raises:
        LaunchCancelledError: the launch or dry run that it is for is not wanted any more.
    """
    import yaml

    # libyaml ends a document with this where its last text ends in an empty line.
    return yaml.dump(data, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=10_000).removesuffix("...\n")
