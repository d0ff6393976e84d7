"""YAML in colours: nothing is lost, and blocks are text."""

from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.tui.ui.palette import Text
from torchx_tui.tui.ui.yaml_text import indented, yaml_text


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"], include_characters="\n"), max_size=200))
def test_the_text_stays_as_it_is(text):
    assert yaml_text(text).plain == "\n".join(text.splitlines())


def test_keys_numbers_and_blocks():
    text = yaml_text("name: x\ncpu: 2\nargs:\n- |\n  key: in a program\n\n  more: 1\nend: true")
    styles = {text.plain[span.start : span.end].strip(): str(span.style) for span in text.spans}
    assert styles["name"] == styles["end"] == "$style-yaml-key"
    assert styles["2"] == styles["true"] == "$style-yaml-number"
    assert styles["key: in a program"] == styles["more: 1"] == "$style-muted"


def test_wrapped_lines_keep_their_indentation():
    text = Text("args:\n  - one two three\n$ run --a b\nshort")
    assert indented(text, 11).plain.splitlines() == [
        "args:", "  - one two", "    three", "$ run --a b", "short",
    ]  # fmt: skip
    assert indented(text, 8).plain.splitlines()[-3:] == ["$ run ", "  --a b", "short"]
