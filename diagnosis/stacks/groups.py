"""Groups of ranks that do the same in the same line.

Only main threads count. Ranks that wait for others are grouped by the user's line in which they wait; wrappers and line
numbers within libraries make no difference. A small group is not suspect for its size: if most ranks are stuck and few
wait, the few are healthy.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ..frames import Frame, Thread, main_frames, user_frame
from .snapshot import StackSnapshot
from .waits import find_wait

_WAITS = re.compile(
    r"(?:^|\.)(?:all_reduce\w*|_?all_?gather\w*|_?reduce_scatter\w*|broadcast\w*|barrier|monitored_barrier|all_to_all\w*"
    r"|gather\w*|scatter\w*|reduce|recv\w*|irecv|send\w*|isend|wait|wait_tensor|_engine_run_backward|_sync_\w+"
    r"|finalize_backward|_verify_param\w*|init_process_group|new_group|_new_process_group_helper"
    r"|store_based_barrier|_store_based_barrier|rendezvous)$"
)
# A call into C++ has no frame: only the user's source line shows the wait.
_WAITS_IN_C = re.compile(r"\.(wait|barrier|all_?reduce|broadcast|all_?gather\w*|reduce_scatter\w*)\(")
_STORE = re.compile(r"(?i)store\w*(?:\(\))?\.(?:get|wait)\(")
STORE_KEY = "a key of the store"
# Where all ranks wait when kernels are launched ahead of time: it does not show which rank is late.
_DEVICE = re.compile(r"(?:^|\.)(?:synchronize|item|cpu|tolist|step|clip_grad_norm_?|_to_copy|nonzero|is_nonzero)$")
_TORCH = re.compile(r"/torch/")
_DISTRIBUTED = re.compile(r"/torch/(?:distributed|autograd|_C)|^torch/|/torch/nn/parallel/|/deepspeed/|/megatron/")
_WRAPPER = re.compile(
    r"_exception_logger\.<locals>\.wrapper|^wrapper$|^_?wrapped|^inner$|^<module>$|^_call_impl$|^_wrapped_call_impl$"
    r"|^decorate_context$|_run_code|_run_module_as_main|_bootstrap"
)
_LOADER = re.compile(r"/torch/utils/data/|/dataloader|/webdataset/|/streaming/|/datasets/")
_SAVES = re.compile(r"^(?:save\w*|torch_save|_save|dump|write_checkpoint\w*|\w*checkpoint\w*|async_save)$")
_COMPILES = re.compile(r"/torch/_inductor/|/torch/_dynamo/|/triton/")
_IMPORTS = re.compile(r"^<frozen (?:importlib|zipimport|site)|/importlib/\w+\.py$|/lib/python[\d.]+/site\.py$")
# Functions at the end of a process: they end threads and process groups, and run the callbacks of `atexit`.
_ENDS = re.compile(r"(?:^|\.)(?:destroy_process_group|_shutdown|_exit_function|_python_exit|_run_exitfuncs)$")
# The innermost frames that show a wait, a checkpoint, a compilation.
_WAIT_DEPTH, _SAVE_DEPTH, _COMPILE_DEPTH = 4, 8, 12


class RankActivity(Enum):
    """What a rank does, by its stack. The order is that of the groups; the values are stable words."""

    EXITED = "exited"
    STOPPED = "stopped"
    HELD = "held"
    LOADS = "data loader"
    SAVES = "saves"
    COMPILES = "compiles"
    ELSEWHERE = "elsewhere"
    STARTING = "starting"
    ENDING = "ending"
    UNREAD = "not read"
    ASYNC = "device"
    WAITS = "waits"


@dataclass(frozen=True)
class RankState:
    """What is known of a rank in a snapshot.

    Attributes:
        threads: its threads; empty if it was not read.
        state: the kernel's letter for its state, such as S, D, T; empty if it does not run.
        waits_for: the kernel function in which it waits.
        has_exited: whether it has ended.
        source: the source line of the main thread's innermost frame, if that is the user's code.
    """

    threads: tuple[Thread, ...] = ()
    state: str = ""
    waits_for: str = ""
    has_exited: bool = False
    source: str = ""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the main thread, innermost first; empty if it was not read."""
        return main_frames(self.threads)


@dataclass(frozen=True)
class RankGroup:
    """Ranks that do the same in the same line.

    Attributes:
        frames: the stack of the first rank, innermost first.
        frame: the innermost frame of the user's code, or else the innermost frame.
        function: the function in which they wait, such as the collective.
        kernel: the kernel function that holds them.
        wait: the wait outside collectives, if known.
    """

    activity: RankActivity
    ranks: tuple[int, ...]
    frames: tuple[Frame, ...] = ()
    frame: Frame | None = None
    function: str = ""
    kernel: str = field(default="", compare=False)
    wait: str | None = None


def rank_states(snapshot: StackSnapshot) -> dict[int, RankState]:
    """Return the state of each rank, running or ended."""
    states = {}
    for rank, stack in sorted(snapshot.ranks.items()):
        frames = main_frames(stack.threads)
        source = snapshot.sources.get(frames[0].file, {}).get(frames[0].line, "") if frames else ""
        states[rank] = RankState(stack.threads, stack.state, stack.waits_for, source=source)
    return {**states, **dict.fromkeys(snapshot.exited, RankState(has_exited=True))}


def group_ranks(states: Mapping[int, RankState]) -> list[RankGroup]:
    """Group ranks: exited ones first, then those that do not wait, then those that wait; small groups first."""
    groups: dict[tuple[RankActivity, object], list[int]] = {}
    for rank, state in sorted(states.items()):
        activity = _activity(state)
        groups.setdefault((activity, _key(activity, state.frames)), []).append(rank)
    order = list(RankActivity)
    made = [_make_group(activity, tuple(ranks), states[ranks[0]]) for (activity, _), ranks in groups.items()]
    return sorted(made, key=lambda group: (order.index(group.activity), len(group.ranks), group.ranks))


def _make_group(activity: RankActivity, ranks: tuple[int, ...], state: RankState) -> RankGroup:
    frames = state.frames
    return RankGroup(
        activity,
        ranks,
        frames,
        _nearest_frame(frames),
        _waiting_function(state) if activity is RankActivity.WAITS else "",
        state.waits_for if activity is RankActivity.HELD else "",
        find_wait(frames, state.source, state.waits_for) if activity is RankActivity.ELSEWHERE else None,
    )


def outliers(groups: Sequence[RankGroup]) -> tuple[int, ...]:
    """Return the ranks that do not wait while others do; if ranks wait in two lines, the smaller group."""
    known = [group for group in groups if group.activity is not RankActivity.UNREAD]
    waiting = [group for group in known if group.activity is RankActivity.WAITS]
    no_suspects = (RankActivity.WAITS, RankActivity.ASYNC, RankActivity.STARTING)
    others = [group for group in known if group.activity not in no_suspects]
    if waiting and others:
        return tuple(sorted(rank for group in others for rank in group.ranks))
    if len(waiting) == len(known) == 2 and len(waiting[0].ranks) < len(waiting[1].ranks):
        return waiting[0].ranks
    return ()


def _activity(state: RankState) -> RankActivity:
    if state.has_exited:
        return RankActivity.EXITED
    if state.state in ("T", "t"):
        return RankActivity.STOPPED
    frames = state.frames
    if not frames:
        return RankActivity.HELD if state.state == "D" else RankActivity.UNREAD
    calls = _calls(frames)
    functions = [frame.function for frame in calls[:_SAVE_DEPTH]]
    if any(map(_ENDS.search, functions)):
        return RankActivity.ENDING
    if _waits_for_ranks(calls, state.source):
        return RankActivity.WAITS
    if _is_importing(frames):
        return RankActivity.STARTING
    if any(_COMPILES.search(frame.file) for frame in calls[:_COMPILE_DEPTH]):
        return RankActivity.COMPILES
    if any(_LOADER.search(frame.file) for frame in calls):
        return RankActivity.LOADS
    if any(_DEVICE.search(frame.function) and _TORCH.search(frame.file) for frame in calls[:2]):
        return RankActivity.ASYNC
    if any(map(_SAVES.search, functions)):
        return RankActivity.SAVES
    return RankActivity.HELD if state.state == "D" else RankActivity.ELSEWHERE


def _waits_for_ranks(calls: list[Frame], source: str) -> bool:
    inner = calls[:_WAIT_DEPTH]
    if any(_WAITS.search(frame.function) and _DISTRIBUTED.search(frame.file) for frame in inner):
        return True
    in_c = _WAITS_IN_C.search(source) or _STORE.search(source)
    return bool(inner) and not inner[0].is_library and in_c is not None


def _is_importing(frames: tuple[Frame, ...]) -> bool:
    """Return whether a rank imports modules, unless an imported module already runs functions of the user."""
    for frame in frames:
        if _IMPORTS.search(frame.file):
            return True
        if not frame.is_library and frame.function != "<module>":
            return False
    return False


def _calls(frames: tuple[Frame, ...]) -> list[Frame]:
    """Return the frames without wrappers."""
    return [frame for frame in frames if not _WRAPPER.search(frame.function)]


def _key(activity: RankActivity, frames: tuple[Frame, ...]) -> object:
    if activity in (RankActivity.WAITS, RankActivity.ASYNC):
        return _nearest_frame(frames)
    return tuple((frame.function, frame.file, 0 if frame.is_library else frame.line) for frame in _calls(frames))


def _nearest_frame(frames: tuple[Frame, ...]) -> Frame | None:
    return user_frame(frames) or next(iter(frames), None)


def _waiting_function(state: RankState) -> str:
    """Return the function that the user called to wait: the outermost known one of a library."""
    if not state.frames[0].is_library:
        found = _WAITS_IN_C.search(state.source)
        return STORE_KEY if _STORE.search(state.source) else f"{found[1]}()" if found else ""
    name = ""
    for frame in itertools.takewhile(lambda frame: frame.is_library, state.frames):
        if _WAITS.search(frame.function) and not _WRAPPER.search(frame.function):
            name = frame.function.rpartition(".")[2]
    return "backward" if name == "_engine_run_backward" else name
