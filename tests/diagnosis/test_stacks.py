"""Groups of ranks and conclusions, from real stacks and from snapshots of jobs that hung."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.hung import hung_snapshot
from support.tables import toml_table

from torchx_tui.base.files import state_folder
from torchx_tui.diagnosis.frames import Frame, Thread, child_frame, main_frames, parse_faulthandler, parse_pyspy
from torchx_tui.diagnosis.recorder.dump import Dump
from torchx_tui.diagnosis.stacks.collect import ask_replicas
from torchx_tui.diagnosis.stacks.conclusion import conclude
from torchx_tui.diagnosis.stacks.groups import RankActivity, RankState, group_ranks
from torchx_tui.diagnosis.stacks.kept import keep_snapshot, kept_snapshots
from torchx_tui.diagnosis.stacks.pace import compare
from torchx_tui.diagnosis.stacks.protocol import from_document, parse_snapshot, to_document
from torchx_tui.diagnosis.stacks.snapshot import ReplicaReply
from torchx_tui.diagnosis.stacks.text import describe_groups, describe_reading, describe_unread
from torchx_tui.logs.pattern.error_reader import read_last_error
from torchx_tui.specs.status import AppState, ReplicaStatus

DATA = Path(__file__).parent / "data"
TABLES = toml_table(Path(__file__).with_name("stacks.toml"))
TORCH = "/venv/lib/python3.11/site-packages/torch"


def pyspy_states(case):
    return {
        rank: RankState(parse_pyspy(json.loads((DATA / "stacks" / f"{case}.rank{rank}.json").read_text())), "S")
        for rank in range(4)
    }


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("sleep", "ranks 0-1, 3 wait in backward, hang.py:18; rank 2 is at hang.py:38 in main"),
        ("loader", "ranks 0, 2-3 wait in backward, hang.py:18; rank 1 is in the data loader, hang.py:15 in read_from"),
        ("mismatch", "ranks 0, 2-3 wait in backward, hang.py:18; rank 1 waits in broadcast, hang.py:40"),
    ],
)
def test_real_stacks(case, words):
    assert describe_groups(group_ranks(pyspy_states(case))).startswith(words)


def stack(*calls, **more):
    """Return a rank that stands in these calls, innermost first: a name of the user's, or ``torch/FILE:NAME``."""
    frames = []
    for call in calls:
        file, _, name = call.rpartition(":")
        frames.append(Frame(name, f"{TORCH}/{file}" if file else "/home/alice/train.py", 12))
    return RankState((Thread("MainThread", tuple(frames), True),), "S", **more)


BACKWARD = stack("autograd/graph.py:_engine_run_backward", "step", "main")
REDUCE = stack("distributed/distributed_c10d.py:all_reduce", "distributed/c10d_logger.py:wrapper", "step", "main")


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([BACKWARD, BACKWARD, stack("main")], "ranks 0-1 wait in backward, train.py:12; rank 2 is at train.py:12"),
        # The few that wait are not the suspects.
        ([REDUCE, *[stack("load", "main")] * 2], "rank 0 waits in all_reduce, train.py:12; ranks 1-2 are"),
        ([REDUCE] * 4, "all 4 ranks wait in all_reduce, train.py:12"),
        ([stack("optim/adam.py:step", "main")] * 4, "stacks cannot tell which rank is late, the flight recorder can"),
        ([REDUCE, stack("utils/data/dataloader.py:__next__", "main")], "rank 1 is in the data loader"),
        ([REDUCE, stack("serialization.py:save", "save_checkpoint", "main")], "rank 1 saves a checkpoint"),
        ([REDUCE, stack("_inductor/codecache.py:compile", "main")], "rank 1 compiles"),
        ([REDUCE, RankState(state="D", waits_for="nfs_wait")], "rank 1 is held by the kernel (nfs_wait)"),
        ([REDUCE, RankState(state="T")], "rank 1 is stopped by a signal"),
        ([REDUCE, RankState(has_exited=True)], "rank 1 has exited"),
        ([REDUCE, RankState(state="S")], "rank 0 waits in all_reduce, train.py:12"),
        # A wait of C++ has no frame: the source tells it.
        ([stack("go", source="work.wait()")] * 2, "both ranks wait in wait(), train.py:12"),
        ([], "no rank was found"),
    ],
)  # fmt: skip
def test_sentences(states, words):
    assert words in describe_groups(group_ranks(dict(enumerate(states))))


def test_many_ranks_and_the_order_of_groups():
    states = dict.fromkeys(range(512), REDUCE)
    states |= {7: stack("load", "main"), 9: RankState(has_exited=True), 300: BACKWARD}
    groups = group_ranks(states)
    assert [group.activity for group in groups] == [RankActivity.EXITED, RankActivity.ELSEWHERE, RankActivity.WAITS]
    assert len(groups[-1].ranks) == 510


def test_faulthandler_amid_other_lines():
    text = (
        "step 3\nCurrent thread 0x00007f67307f86c0 (most recent call first):\n  <no Python frame>\n\n"
        'Thread 0x00007f66ff0536c0 [loader] (most recent call first):\n  File "/a.py", line ??? in f\nnoise\n\n'
        'Thread 0x00007f6758663b80 (most recent call first):\n  File "/home/b c.py", line 7 in <lambda>\n'
        '  File "/home/b c.py", line 9 in main\n'
    )
    threads = parse_faulthandler(text)
    assert [(thread.name, thread.is_main) for thread in threads] == [("loader", False), ("MainThread", True)]
    assert main_frames(threads) == (Frame("<lambda>", "/home/b c.py", 7), Frame("main", "/home/b c.py", 9))
    assert parse_faulthandler("nothing") == ()


@pytest.mark.parametrize(
    "value", [None, 3, {}, [3], [{"frames": 3}], [{"frames": [3, {}]}], [{"frames": [{"line": "x"}]}]]
)
def test_malformed_answers_of_py_spy(value):
    assert all(frame.line == 0 for thread in parse_pyspy(value) for frame in thread.frames)


def test_frame_of_a_fork_is_not_its_parents():
    threads = parse_pyspy(json.loads((DATA / "stacks" / "with_workers.rank0.json").read_text()))
    assert main_frames(threads)
    forked = [Frame("get", "/usr/lib/python3.11/queue.py", 1),
              Frame("_bootstrap", "/usr/lib/python3.11/multiprocessing/process.py", 1),
              Frame("main", "/home/alice/train.py", 3)]  # fmt: skip
    assert child_frame([Thread("MainThread", tuple(forked), True)]) is None
    mine = Frame("read", "/home/alice/data.py", 5)
    assert child_frame([Thread("MainThread", (mine, *forked), True)]) == mine


# ---- Snapshots


@pytest.mark.parametrize("case", TABLES["hung"], ids=lambda case: case["kind"])
def test_jobs_that_hung(case):
    found = conclude(hung_snapshot(case["kind"]))
    assert case["words"] in found.sentence
    assert [*found.blocking] == case["blocking"] if "blocking" in case else len(found.blocking) == 1


def test_how_long_ranks_have_waited():
    details = conclude(hung_snapshot("uneven")).details
    assert any(re.fullmatch(r"ranks [\d, -]+ have waited for 1m \d\ds", detail) for detail in details), details


def test_two_snapshots_tell_hung_from_slow():
    snapshot = hung_snapshot("sleep")
    assert compare(snapshot, snapshot) == "hangs"
    dumps = {rank: replace(dump, collectives=dump.collectives[:-3]) for rank, dump in snapshot.dumps.items()}
    assert compare(snapshot, replace(snapshot, dumps=dumps)) == "moves"
    assert conclude(snapshot, snapshot).pace == "hangs"


@pytest.mark.parametrize("changes", [{"later": 0.0}, {"pauses": (40.0,) * 9}, {"works": True}])
def test_a_usual_wait_is_no_hang(changes):
    """Equal collectives are no hang while the wait is as long as others were, or a stack changes."""
    later = changes.get("later", 60.0)
    snapshot, earlier = hung_snapshot("sleep", later), hung_snapshot("sleep", later - 2)
    snapshot = replace(snapshot, pauses=changes.get("pauses", ()))
    if "works" in changes:
        first, second, *rest = snapshot.processes
        moved = replace(second, threads=(Thread("MainThread", (Frame("f", "/home/alice/x.py", 3),), True),))
        snapshot = replace(snapshot, processes=(first, moved, *rest))
    found = conclude(snapshot, earlier)
    assert found.pace == "waits"
    if "works" not in changes:
        assert found.blocking == ()
        assert found.sentence.startswith("no collective ended within 2 s (the longest pause was")


def test_rank_that_computes_does_not_hang():
    """It may be in one long call of a library; it is named still."""
    snapshot = hung_snapshot("sleep")
    earlier = replace(snapshot, at=snapshot.at - 2)

    def with_cpu(works):
        stacks = (replace(stack, cpu=stack.cpu + 190 * works(stack.rank)) for stack in snapshot.processes)
        return replace(snapshot, processes=tuple(stacks))

    found = conclude(with_cpu(lambda rank: rank == 1), earlier)
    assert (found.pace, found.blocking) == ("waits", (1,))
    assert found.pace_sentence.endswith("for longer than usual; a rank may still be computing.")
    assert conclude(with_cpu(lambda rank: rank != 1), earlier).pace == "hangs"


def test_a_rank_that_imports_is_starting():
    modules = [Frame("<module>", "/home/alice/data.py", 3), Frame("_call", "<frozen importlib._bootstrap>", 241),
               Frame("<module>", "/home/alice/train.py", 1)]  # fmt: skip
    importing = RankState((Thread("MainThread", tuple(modules), True),), "S")
    groups = group_ranks({0: stack("distributed/rendezvous.py:rendezvous", "main"), 1: importing, 2: importing})
    assert describe_groups(groups) == (
        "rank 0 waits in rendezvous, train.py:12; ranks 1-2 are starting, data.py:3 in <module>"
    )
    # A script may run all of its training inside an import.
    training = RankState((Thread("MainThread", (Frame("step", "/home/alice/train.py", 9), *modules), True),), "S")
    assert group_ranks({0: training})[0].activity is RankActivity.ELSEWHERE


@pytest.mark.parametrize("case", TABLES["waits"], ids=str)
def test_wait_of_a_rank(case):
    frames = [(name, file.replace("PYTHON", "/usr/lib/python3.11")) for name, file in case.get("frames", [])]
    calls = [*(Frame(name, file, 7) for name, file in frames), Frame("main", "/home/alice/h.py", 118)]
    threads = (Thread("MainThread", tuple(calls), True),)
    state = RankState(threads, "S", case.get("kernel", ""), source=case.get("source", ""))
    at = "" if case["words"] == "is at" else ","
    assert describe_groups(group_ranks({2: state})) == f"rank 2 {case['words']}{at} h.py:118 in main"


def test_last_rank_to_end_blocks_nobody():
    """Ranks that ended well do not hold up one that ends; they do hold up one that waits for them."""

    def threads(*calls):
        return [{"thread_name": "MainThread", "frames": [{"name": n, "filename": f, "line": 9} for n, f in calls]}]

    def found(*calls):
        process = {"kind": "process", "rank": "0", "world": "2", "pid": 5, "is_main": True, "threads": threads(*calls)}
        end = ReplicaReply(1, has_ended=True, exit_code=0, ended_at=5.0)
        return conclude(parse_snapshot("local_cwd://torchx/a", "trainer", (ReplicaReply(0, (process,)), end)))

    ending = found(("destroy_process_group", f"{TORCH}/distributed/distributed_c10d.py"), ("main", "/home/alice/t.py"))
    assert ending.blocking == ()
    assert "rank 0 is ending" in ending.sentence
    assert found(("barrier", f"{TORCH}/distributed/distributed_c10d.py"), ("main", "/home/a/t.py")).blocking == (1,)


def read_errors(texts):
    errors = {rank: read_last_error(text) for rank, text in texts.items()}
    return {rank: error for rank, error in errors.items() if error}


LOST = "RuntimeError: [../gloo/pair.cc:525] Connection closed by peer [127.0.0.1]:32431\n"


@pytest.mark.parametrize(
    ("errors", "times", "blocking", "words"),
    [
        ({}, (6.0, 5.0), (1,), "rank 1 has exited (SIGKILL); rank 0 ended after that; rank 2 "),
        ({0: LOST}, (6.0, 5.0), (1,), "rank 1 has exited (SIGKILL); rank 0 ended after that; rank 2 "),
        # A program that swallows the error of its wait may end before the one that it waits for.
        ({0: LOST}, (5.0, 6.0), (1,), "rank 1 has exited (SIGKILL); rank 0 ended after that; rank 2 "),
        ({}, (None, None), (0, 1), "ranks 0-1 have exited (exit 1, SIGKILL); rank 2 "),
    ],
)
def test_first_failed_rank_is_blocking(errors, times, blocking, words):
    """A job is looked at while the end of one rank ends the others."""
    waiting = [
        {"name": "all_reduce", "filename": f"{TORCH}/distributed/distributed_c10d.py", "line": 9},
        {"name": "main", "filename": "/home/alice/t.py", "line": 9},
    ]
    threads = [{"thread_name": "MainThread", "frames": waiting}]
    process = {"kind": "process", "rank": "2", "world": "3", "pid": 5, "is_main": True, "threads": threads}
    replies = (
        ReplicaReply(0, has_ended=True, exit_code=1, ended_at=times[0]),
        ReplicaReply(1, has_ended=True, signal="SIGKILL", ended_at=times[1]),
        ReplicaReply(2, (process,)),
    )
    found = conclude(parse_snapshot("local_cwd://torchx/a", "trainer", replies), None, read_errors(errors))
    assert found.blocking == blocking
    assert found.sentence.startswith(words)


def test_short_wait_is_no_finding():
    snapshot = hung_snapshot("sleep")
    waiting = max(call.created_ns for dump in snapshot.dumps.values() for call in dump.collectives) / 1e9
    recorded_at = dict.fromkeys(snapshot.recorded_at, waiting + 0.2)
    assert conclude(replace(snapshot, recorded_at=recorded_at)).finding is None


@pytest.mark.parametrize("case", TABLES["over"], ids=lambda case: case["words"])
def test_jobs_that_are_over(case):
    replies = tuple(ReplicaReply(number, has_ended=True, **end) for number, end in enumerate(case["ends"]))
    texts = {int(rank): text.replace("{lost}", LOST) for rank, text in case.get("errors", {}).items()}
    found = conclude(parse_snapshot("local_cwd://torchx/a", "trainer", replies), None, read_errors(texts))
    assert [*found.blocking] == case["blocking"]
    assert case["words"] in found.sentence


def test_latest_snapshots_are_kept():
    snapshot = hung_snapshot("sleep", 0.0)
    assert kept_snapshots(snapshot.handle) == []
    for number in range(13):
        snapshot = replace(snapshot, at=1000.0 + number)
        keep_snapshot(snapshot)
    folder = next((state_folder() / "stacks").iterdir())
    (folder / "999999999999999.json").write_text("{")
    kept = kept_snapshots(snapshot.handle)
    assert [each.at for each in kept] == [1012.0 - number for number in range(9)]
    assert kept[0] == snapshot
    assert kept_snapshots(snapshot.handle, 2, has_recorders=False) == [replace(snapshot, dumps={})]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_comparison_of_two_snapshots_is_kept():
    first, second = replace(hung_snapshot("sleep"), at=1000.0), replace(hung_snapshot("sleep"), at=1002.0, pace="moves")
    keep_snapshot(first)
    keep_snapshot(second, instead_of=first)
    (kept,) = kept_snapshots(first.handle)
    assert (kept.at, conclude(kept).pace) == (1002.0, "moves")
    assert conclude(kept).sentence == conclude(second).sentence
    keep_snapshot(second, instead_of=replace(first, at=second.at))
    assert len(kept_snapshots(first.handle)) == 1
    # As earlier versions kept it, or somebody else.
    document = to_document(first)
    with pytest.raises(ValueError, match=r"\$\.pace"):
        from_document({**document, "pace": "flies"})
    del document["pace"]
    assert from_document(document).pace == ""


def test_foreign_output_is_harmless():
    lines = (
        {"kind": "process", "rank": "x", "is_main": True, "host": "\x1b[31mh", "tried": [["a"], ["py-spy", "\x07no"]]},
        {"kind": "process", "rank": 10**12, "is_main": True, "world": "9" * 30, "threads": "none", "text": None},
        {"kind": "recorder", "rank": "0", "way": "file", "data": "AAAA"},
        {"kind": "recorder", "rank": [], "way": "file", "data": 3},
        {"kind": "source", "file": 3, "lines": {"x": 1, "9": "\x1b"}},
        {},
    )
    replies = (ReplicaReply(0, lines),)
    snapshot = parse_snapshot("a://b/c", "r", replies)
    found = conclude(snapshot)
    assert "\x1b" not in found.sentence
    assert snapshot.dumps == {}
    assert "arrived damaged" in dict(describe_unread(snapshot))["flight recorder of rank 0"]
    assert all(text.isprintable() for name, why in describe_unread(snapshot) for text in (name, why))
    assert snapshot.world_size == 1
    # The rank's recorder may be in a file.
    snapshot = parse_snapshot("a://b/c", "r", replies, recorded={0: Dump(())})
    assert "flight recorder of rank 0" not in dict(describe_unread(snapshot))


def test_replicas_that_cannot_be_asked_count_as_ranks():
    lines = ({"kind": "process", "rank": 0, "is_main": True},)
    errors = [ReplicaReply(k, error="Too many open files") for k in (1, 2, 3)]
    snapshot = parse_snapshot("a://b/c", "r", (ReplicaReply(0, lines), *errors))
    assert describe_reading(snapshot) == "nothing read, 0 of 4 ranks"
    assert snapshot.exited == {}


@pytest.mark.parametrize(("once_a_node", "asked"), [(True, 16), (False, 40)])
def test_nodes_are_asked_once(once_a_node, asked):
    """40 replicas, whose nodes are not known, on 8 nodes: the second part of them repeats the hosts of the first."""
    replicas = [ReplicaStatus(k, AppState.RUNNING, "trainer", "") for k in range(40)]

    def ask(k):
        return ReplicaReply(k, ({"kind": "end", "host": f"n{k % 8}"},))

    replies = ask_replicas(ask, replicas, once_a_node=once_a_node)
    assert sorted(replies) == [*range(40)]
    assert sum(bool(reply.lines) for reply in replies.values()) == asked
    known = [ReplicaStatus(k, AppState.RUNNING, "trainer", f"n{k // 5}") for k in range(40)]
    replies = ask_replicas(ask, known, once_a_node=once_a_node)
    assert [k for k, reply in replies.items() if reply.lines] == ([*range(0, 40, 5)] if once_a_node else [*range(40)])
