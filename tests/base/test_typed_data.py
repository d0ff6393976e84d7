"""Decoded data is checked against types."""

import subprocess
import sys

# Three threads meet each type at once; evaluating its annotations lets another thread run.
PROGRAM = """
import sys, threading, typing
from torchx_tui.base.typed_data import convert
sys.setswitchinterval(1e-6)
FIELDS = {f"field{n}": "typing.Optional[typing.Union[int, str]]" for n in range(30)}
def work():
    start.wait()
    convert(dict.fromkeys(FIELDS, 1), kind)
for _ in range(200):
    kind = typing.TypedDict("Kind", FIELDS)
    kind.__module__ = "__main__"
    start = threading.Barrier(3)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_three_threads_convert_to_a_new_type_at_once():
    assert subprocess.run([sys.executable, "-c", PROGRAM], check=False, timeout=100).returncode == 0
