"""The flight recorder: dumps are read or refused, nothing in them is run, and the right rank is named."""

import json
import os
import pickle
import struct
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.diagnosis.ranks import name_ranks
from torchx_tui.diagnosis.recorder.dump import DumpError, parse_dump, rank_of_file, read_dump
from torchx_tui.diagnosis.recorder.findings import find, rank_positions
from torchx_tui.diagnosis.stacks.text import describe_finding, describe_state

DATA = Path(__file__).parent / "data" / "fr"
FINDINGS = toml_table(Path(__file__).with_name("findings.toml"))


def files_of(case, pattern="fr_*"):
    return {rank_of_file(path.name): path for path in sorted((DATA / case).glob(pattern))}


def dumps_of(case, pattern="fr_*"):
    return {rank: read_dump(path) for rank, path in files_of(case, pattern).items() if rank is not None}


def raw_dumps_of(case, pattern):
    """Return the dumps as torch wrote them, without any code of ours."""
    texts = {rank: path.read_bytes() for rank, path in files_of(case, pattern).items()}
    return {rank: json.loads(text) if text[:1] == b"{" else pickle.loads(text) for rank, text in texts.items()}


# The job was told which rank does what, see its name: sleep and site_socket let rank 2 sleep, loader lets rank 1 read a
# sample for ever, mismatch lets rank 1 call broadcast, straggle slows rank 2 down. Each was dumped in one form or two.
@pytest.mark.parametrize(
    ("case", "pattern", "kind", "blocking", "words"),
    [
        ("sleep", "fr_*", "missing", (2,), "rank 2 never reached all_reduce #46, where ranks 0-1, 3 wait (hang.py:18"),
        ("sleep", "fr.json.*", "missing", (2,), "rank 2 never reached all_reduce #46, where ranks 0-1, 3 wait; its"),
        ("site_socket", "fr.json.*", "missing", (2,), "rank 2 never reached all_reduce #46, where ranks 0-1, 3 wait;"),
        ("loader", "fr_*", "missing", (1,), "rank 1 never reached all_reduce #46, where ranks 0, 2-3 wait (hang.py:18"),
        ("loader", "fr.json.*", "missing", (1,), "rank 1 never reached all_reduce #46, where ranks 0, 2-3 wait; its"),
        ("mismatch", "fr_*", "mismatch", (1,), "at #46 rank 1 called broadcast while the others called all_reduce ("),
        ("mismatch", "fr.json.*", "mismatch", (1,), "at #46 rank 1 called broadcast while the others called all_re"),
        ("straggle", "fr_*", "straggler", (2,), "rank 2 came last in 62 of 79 collectives"),
    ],
)
def test_real_dumps(case, pattern, kind, blocking, words):
    found = find(dumps_of(case, pattern), 4)
    assert (found[0].kind, found[0].blocking) == (kind, blocking)
    assert describe_finding(found[0]).startswith(words)
    # Nobody else is blamed, and torch's own counters name the same rank.
    assert len(found) == 1
    raw = raw_dumps_of(case, pattern)
    assert len(raw) == 4
    reached = {rank: int(each["pg_status"]["0"]["last_enqueued_collective"]) for rank, each in raw.items()}
    through = {rank: int(each["pg_status"]["0"]["last_completed_collective"]) for rank, each in raw.items()}
    if kind == "missing":
        assert {rank for rank, number in reached.items() if number < max(reached.values())} == {*blocking}
        assert found[0].waiting == tuple(rank for rank in reached if rank not in blocking)
        assert found[0].since_ns == min(each["entries"][-1]["time_created_ns"] for rank, each in raw.items()
                                        if rank not in blocking)  # fmt: skip
    elif kind == "mismatch":
        called = {rank: each["entries"][-1]["profiling_name"] for rank, each in raw.items()}
        assert {rank for rank, name in called.items() if name == "gloo:broadcast"} == {*blocking}
    else:
        # It hangs nowhere: all are through all that they began.
        assert {*reached.values()} == {*through.values()} == {85}


class Runs:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def hostile(folder):
    whole = (DATA / "sleep" / "fr_0").read_bytes()
    deep_pickle = b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b"."
    return {
        "a program": pickle.dumps({"entries": [Runs(folder / "ran")]}),
        "a program, old protocol": pickle.dumps(Runs(folder / "ran"), 0),
        "a class": pickle.dumps({"entries": [], "x": Path}),
        "bytes": pickle.dumps({"entries": [], "x": bytearray(10)}),
        "cut off": whole[: len(whole) // 2],
        "nothing": b"",
        "a list": pickle.dumps([1, 2]),
        "no entries": pickle.dumps({"version": "2.10"}),
        "entries of another kind": pickle.dumps({"entries": "all"}),
        "deep": deep_pickle,
        "deep JSON": b'{"entries":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "JSON that is cut off": b'{"entries":[{"a":1',
        "no text": b"{\xff\xfe",
        "a huge number of remembered objects": b"\x80\x02}r" + struct.pack("<I", 1 << 31) + b"i",
        "millions of opcodes": b"\x80\x02]" + b"}a" * 5_000_000 + b".",
        "a stack of millions": b"\x80\x02" + b"N" * 10_000_000 + b".",
        "millions of marks": b"\x80\x02" + b"(" * 10_000_000 + b".",
        "millions of JSON values": b'{"entries":[' + b"[]," * 5_000_000 + b"0]}",
        "a text longer than the file": b"\x80\x02X" + struct.pack("<I", 1 << 30) + b"abc.",
    }


TOO_MUCH = {
    **dict.fromkeys(("millions of opcodes", "a stack of millions", "millions of marks"), "more than 1,000,000 opcodes"),
    "millions of JSON values": "more than 2,000,000 values",
}


@pytest.mark.parametrize("name", hostile(Path("/")))
def test_what_is_no_dump_is_refused_and_nothing_of_it_is_run(name, tmp_path):
    with pytest.raises(DumpError, match=TOO_MUCH.get(name, r"\w")):
        parse_dump(hostile(tmp_path)[name])
    assert not (tmp_path / "ran").exists()


def test_dump_of_the_default_size_is_read():
    frames = [{"name": f"f{number}", "filename": "train.py", "line": number} for number in range(30)]
    entries = [
        {"process_group": ("0", "default_pg"), "profiling_name": "nccl:all_reduce", "collective_seq_id": number,
         "p2p_seq_id": 0, "time_created_ns": number, "input_sizes": [[1, 2]], "input_dtypes": ["Float"],
         "state": f"completed {number}", "frames": [dict(frame) for frame in frames]}
        for number in range(2_000)
    ]  # fmt: skip
    assert len(parse_dump(pickle.dumps({"entries": entries})).collectives) == 2_000


def test_files_that_cannot_be_dumps(tmp_path):
    large = tmp_path / "fr_0"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    os.mkfifo(tmp_path / "fr_1")
    for name, words in (("fr_0", "more than 64 MB"), ("fr_1", "named pipe"), ("fr_2", "No such file")):
        with pytest.raises(DumpError, match=words):
            read_dump(tmp_path / name)
    assert [rank_of_file(name) for name in ("fr_12", "nccl_trace_rank_3", "fr.json.7", "fr_x")] == [12, 3, 7, None]


def test_a_broken_entry_costs_itself_only():
    good = {"process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "collective_seq_id": 3}
    broken = [None, 3, {}, {**good, "process_group": ["0"]}, {**good, "collective_seq_id": "3"}, {**good, "frames": 3}]
    odd = {**good, "input_sizes": [[2, "x"], None, 3], "input_dtypes": None, "time_created_ns": "now", "state": []}
    dump = parse_dump(
        json.dumps({"entries": [*broken, good, odd], "pg_config": {"0": 3, "1": {"ranks": "[0, x]"}}}).encode()
    )
    assert [(call.op, call.seq) for call in dump.collectives] == [("all_reduce", 3)] * 3
    assert dump.collectives[-1].sizes == ((2,), (), ())


def calls(*entries, name="nccl", members=None):
    """Return a dump; an entry is an operation, its number, and what else it has."""
    made = []
    for op, seq, more in entries:
        state = "completed" if more.pop("done", True) else "started"
        group = more.pop("group", "0")
        seqs = {"p2p_seq_id": seq} if more.get("is_p2p") else {"collective_seq_id": seq}
        description = "default_pg" if group == "0" else "tp"
        made.append({"process_group": [group, description], "profiling_name": f"{name}:{op}", "state": state,
                     "input_sizes": [[8]], "input_dtypes": ["Float"], "time_created_ns": 1, **seqs,
                     **more})  # fmt: skip
    config = {key: {"name": key, "desc": "", "ranks": str(ranks)} for key, ranks in (members or {}).items()}
    return parse_dump(json.dumps({"entries": made, "pg_config": config}).encode())


WAITS = {"done": False}


@pytest.mark.parametrize("case", FINDINGS.values(), ids=FINDINGS)
def test_findings(case):
    made = {int(rank): calls(*((op, seq, dict(more)) for op, seq, more in entries))
            for rank, entries in case["dumps"].items()}  # fmt: skip
    finding = find(made, case.get("ranks", len(made)))[0]
    assert (finding.kind, [*finding.blocking]) == (case["kind"], case["blocking"]), finding
    assert case["words"] in describe_finding(finding)


def positions(dumps, world_size=0):
    return [
        (each.ranks, f"{each.collective.op} #{each.collective.seq}" if each.collective else "", describe_state(each),
         each.is_blocking)
        for each in rank_positions(dumps, find(dumps, world_size)[0], world_size)
    ]  # fmt: skip


def test_positions_of_all_ranks():
    """Those to blame first, ranks that stood alike in one row, then those without a dump."""
    assert positions(dumps_of("sleep"), 6) == [
        ((2,), "all_reduce #45", "done, idle", True),
        ((0, 1, 3), "all_reduce #46", "scheduled, waiting", False),
        ((4, 5), "", "no flight recorder", False),
    ]
    assert positions(dumps_of("mismatch")) == [
        ((1,), "broadcast #46", "scheduled, waiting", True),
        ((0, 2, 3), "all_reduce #46", "scheduled, waiting", False),
    ]
    first = rank_positions(dumps_of("sleep"), find(dumps_of("sleep"), 4)[0])[1]
    assert first.since_ns == min(
        call.created_ns for dump in dumps_of("sleep").values() for call in dump.collectives if not call.is_done
    )


def test_position_of_a_rank_in_several_groups():
    """It waits in the group of the verdict, where it has begun something in another before."""
    begun = ("all_gather", 3, {"group": "1", "done": False})
    dumps = {0: calls(begun, ("all_reduce", 2, WAITS.copy())), 1: calls(("all_reduce", 1, {}))}
    assert positions(dumps, 2)[1][:3] == ((0,), "all_reduce #2", "started, waiting")
    dumps = {0: calls(("all_reduce", 2, WAITS.copy())), 1: parse_dump(b'{"entries": []}')}
    assert positions(dumps, 2)[-1][:3] == ((1,), "", "no flight recorder")


def test_members_of_a_group_are_those_that_nccl_tells():
    members = {"0": [0, 1, 2, 3], "1": [1, 3]}
    dumps = {rank: calls(("all_reduce", 1, {}), members=members) for rank in range(4)}
    dumps[1] = calls(("all_reduce", 1, {}), ("all_gather", 1, {"group": "1", "done": False}), members=members)
    finding = find(dumps, 4)[0]
    assert (finding.kind, finding.blocking, finding.waiting) == ("missing", (3,), (1,))
    assert "all_gather #1 of group 1" in describe_finding(finding)


def test_names_of_ranks():
    assert name_ranks([3]) == "rank 3"
    assert name_ranks([8, 0, 1, 2]) == "ranks 0-2, 8"
    assert name_ranks(range(0, 40, 2)).endswith("and 12 more")
    assert find({}, 4) == []
    assert find({rank: calls(("all_reduce", 3, {})) for rank in range(2)}, 2) == []
