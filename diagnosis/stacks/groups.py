"""Groups of ranks that stand in one place, the outliers first, and a sentence of what that means.

Only the main thread counts. Ranks that wait for others are put together by the user's line that they wait in; wrappers
and line numbers within libraries make no difference. That a group is small is no reason to suspect it: where most ranks
are stuck and few wait, the few are the healthy ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..recorder.verdict import name_ranks
from .frames import Frame, Thread, main_frames
from .waits import Doing, describe_wait

_WAITS = re.compile(
    r"(?:^|\.)(?:all_reduce\w*|_?all_?gather\w*|_?reduce_scatter\w*|broadcast\w*|barrier|monitored_barrier|all_to_all\w*"
    r"|gather\w*|scatter\w*|reduce|recv\w*|irecv|send\w*|isend|wait|wait_tensor|_engine_run_backward|_sync_\w+"
    r"|finalize_backward|_verify_param\w*|init_process_group|new_group|_new_process_group_helper"
    r"|store_based_barrier|_store_based_barrier|rendezvous)$"
)
# A call into C++ has no frame: the user's line alone tells that it waits.
_WAITS_IN_C = re.compile(r"\.(wait|barrier|all_?reduce|broadcast|all_?gather\w*|reduce_scatter\w*)\(")
_STORE = re.compile(r"(?i)store\w*(?:\(\))?\.(?:get|wait)\(")
_STORE_KEY = "a key of the store"
# Where all ranks stand when kernels are launched ahead of them: it says nothing of who is late.
_ASYNC = re.compile(r"(?:^|\.)(?:synchronize|item|cpu|tolist|step|clip_grad_norm_?|_to_copy|nonzero|is_nonzero)$")
_TORCH = re.compile(r"/torch/")
_DISTRIBUTED = re.compile(r"/torch/(?:distributed|autograd|_C)|^torch/|/torch/nn/parallel/|/deepspeed/|/megatron/")
_NOISE = re.compile(
    r"_exception_logger\.<locals>\.wrapper|^wrapper$|^_?wrapped|^inner$|^<module>$|^_call_impl$|^_wrapped_call_impl$"
    r"|^decorate_context$|_run_code|_run_module_as_main|_bootstrap"
)
_LOADER = re.compile(r"/torch/utils/data/|/dataloader|/webdataset/|/streaming/|/datasets/")
_SAVES = re.compile(r"^(?:save\w*|torch_save|_save|dump|write_checkpoint\w*|\w*checkpoint\w*|async_save)$")
_COMPILES = re.compile(r"/torch/_inductor/|/torch/_dynamo/|/triton/")
_IMPORTS = re.compile(r"^<frozen (?:importlib|zipimport|site)|/importlib/\w+\.py$|/lib/python[\d.]+/site\.py$")
# Functions at the end of a process: they end threads and process groups, and run the callbacks of `atexit`.
_ENDS = re.compile(r"(?:^|\.)(?:destroy_process_group|_shutdown|_exit_function|_python_exit|_run_exitfuncs)$")
# How many of the innermost frames tell that a rank waits, or saves a checkpoint.
_WAIT_DEPTH, _SAVE_DEPTH = 4, 8


class Standing(Enum):
    """What a rank does, by its stack; the value is told of one rank or of several."""

    EXITED = ("has exited", "have exited")
    STOPPED = ("is stopped by a signal", "are stopped by a signal")
    HELD = ("is held by the kernel", "are held by the kernel")
    LOADS = ("is in the data loader", "are in the data loader")
    SAVES = ("saves a checkpoint", "save a checkpoint")
    COMPILES = ("compiles", "compile")
    ELSEWHERE = ("is", "are")
    STARTING = ("is starting", "are starting")
    ENDING = ("is ending", "are ending")
    UNREAD = ("was not read", "were not read")
    ASYNC = ("waits for the device", "wait for the device")
    WAITS = ("waits for others", "wait for others")

    def words(self, count: int) -> str:
        """Say it of so many ranks."""
        return self.value[count != 1]


@dataclass(frozen=True)
class RankState:
    """What is known of one rank when its stack was taken.

    Args:
        threads: its threads; none where it was not read.
        state: the kernel's letter for its state, such as S, D, T; empty where it does not run.
        waits_for: the kernel's function that it waits in.
        has_exited: whether it has ended.
        source: the line of source that its main thread stands in, where that is the user's own.
    """

    threads: tuple[Thread, ...] = ()
    state: str = ""
    waits_for: str = ""
    has_exited: bool = False
    source: str = ""


@dataclass(frozen=True)
class Group:
    """Ranks that stand in one place.

    Args:
        standing: what they do.
        ranks: which they are, in order.
        frames: the stack of the first of them, innermost first.
        place: the line that says where: of the user's own where there is one.
        function: what is called there, such as the collective.
        detail: what the kernel waits for, where it holds them.
        doing: the wait or other activity outside collectives, if known.
    """

    standing: Standing
    ranks: tuple[int, ...]
    frames: tuple[Frame, ...] = ()
    place: Frame | None = None
    function: str = ""
    detail: str = field(default="", compare=False)
    doing: Doing | None = None

    @property
    def words(self) -> str:
        """The activity as a verb phrase: ``waits for a subprocess``; ``is at`` if only the line is known."""
        if self.doing is not None:
            return self.doing.several if len(self.ranks) > 1 else self.doing.one
        words = self.standing.words(len(self.ranks))
        return f"{words} at" if self.standing is Standing.ELSEWHERE else words


def group_ranks(states: Mapping[int, RankState]) -> list[Group]:
    """Group ranks by where they stand: exited first, then those that do not wait, then those that wait, few first."""
    members: dict[tuple[object, ...], list[int]] = {}
    facts: dict[tuple[object, ...], tuple[Standing, tuple[Frame, ...]]] = {}
    for rank in sorted(states):
        frames = main_frames(states[rank].threads)
        standing = _standing(states[rank], frames)
        key = (standing, *_key(standing, frames))
        members.setdefault(key, []).append(rank)
        facts.setdefault(key, (standing, frames))
    groups = []
    for key, ranks in members.items():
        standing, frames = facts[key]
        detail = states[ranks[0]].waits_for if standing is Standing.HELD else ""
        state = states[ranks[0]]
        called = _called(frames, state.source) if standing is Standing.WAITS else ""
        doing = describe_wait(frames, state.source, state.waits_for) if standing is Standing.ELSEWHERE else None
        groups.append(Group(standing, tuple(ranks), frames, _user_frame(frames), called, detail, doing))
    order = list(Standing)
    return sorted(groups, key=lambda group: (order.index(group.standing), len(group.ranks), group.ranks))


def describe_groups(groups: list[Group]) -> str:
    """Say in a sentence what the groups mean, and no more: who waits, and who does not."""
    waiting = [group for group in groups if group.standing is Standing.WAITS]
    unread = [group for group in groups if group.standing is Standing.UNREAD]
    others = [group for group in groups if group not in waiting and group not in unread]
    if not groups:
        return "no rank was found"
    if not waiting and not others:
        return f"{_who(unread[0])} {unread[0].standing.words(len(unread[0].ranks))}"
    if len(groups) == 1:
        return _alone(groups[0])
    if waiting and not others:
        parts = [f"{_who(group)} {_verb(group)}" for group in reversed(waiting)]
        return "; ".join(parts) if len(parts) > 1 else _alone(waiting[0])
    parts = [f"{_who(group)} {_verb(group)}" for group in [*reversed(waiting), *others]]
    if all(group.standing is Standing.ASYNC for group in others) and not waiting:
        return _alone(others[0])
    return "; ".join(parts[:4])


def says_nothing(groups: list[Group]) -> bool:
    """Tell whether stacks cannot name a rank: all stand where kernels are waited for, or all wait in one place."""
    kinds = {group.standing for group in groups if group.standing is not Standing.UNREAD}
    return kinds == {Standing.ASYNC} or (kinds == {Standing.WAITS} and len(groups) == 1)


def _alone(group: Group) -> str:
    if group.standing is Standing.ASYNC:
        return f"{_all(group)} {_verb(group)}: stacks cannot tell which rank is late, the flight recorder can"
    return f"{_all(group)} {_verb(group)}"


def _all(group: Group) -> str:
    return name_ranks(group.ranks) if len(group.ranks) == 1 else f"all {len(group.ranks)} ranks"


def _who(group: Group) -> str:
    return name_ranks(group.ranks) if len(group.ranks) <= 3 else f"{len(group.ranks)} ranks"


def _verb(group: Group) -> str:
    if group.standing is Standing.WAITS and group.function:
        inside = "for" if group.function == _STORE_KEY else "in"
        return f"{'waits' if len(group.ranks) == 1 else 'wait'} {inside} {group.function}{_at(group)}"
    at = _at(group).removeprefix(",") if group.words.endswith(" at") else _at(group)
    return f"{group.words}{f' ({group.detail})' if group.detail else ''}{at}"


def _at(group: Group) -> str:
    if group.place is None:
        return ""
    inside = "" if group.standing is Standing.WAITS else f" in {group.place.function}"
    return f", {group.place.place}{inside}"


def _standing(state: RankState, frames: tuple[Frame, ...]) -> Standing:
    if state.has_exited:
        return Standing.EXITED
    if state.state in ("T", "t"):
        return Standing.STOPPED
    if state.state == "D" and not frames:
        return Standing.HELD
    if not frames:
        return Standing.UNREAD
    calls = [frame for frame in frames if not _NOISE.search(frame.function)]
    if any(_ENDS.search(frame.function) for frame in calls[:_SAVE_DEPTH]):
        return Standing.ENDING
    if _waits_for_ranks(calls, state.source):
        return Standing.WAITS
    if _is_importing(frames):
        return Standing.STARTING
    if any(_COMPILES.search(frame.file) for frame in calls[:12]):
        return Standing.COMPILES
    if any(_LOADER.search(frame.file) for frame in calls):
        return Standing.LOADS
    if any(_ASYNC.search(frame.function) and _TORCH.search(frame.file) for frame in calls[:2]):
        return Standing.ASYNC
    if any(_SAVES.search(frame.function) for frame in calls[:_SAVE_DEPTH]):
        return Standing.SAVES
    return Standing.HELD if state.state == "D" else Standing.ELSEWHERE


def _waits_for_ranks(calls: list[Frame], source: str) -> bool:
    """Return whether a rank waits for other ranks."""
    inner = calls[:_WAIT_DEPTH]
    if any(_WAITS.search(frame.function) and _DISTRIBUTED.search(frame.file) for frame in inner):
        return True
    in_c = _WAITS_IN_C.search(source) or _STORE.search(source)
    return bool(inner) and not inner[0].is_library and in_c is not None


def _is_importing(frames: Iterable[Frame]) -> bool:
    """Return whether a rank imports modules, but not if the imported module already runs functions of the user."""
    for frame in frames:
        if _IMPORTS.search(frame.file):
            return True
        if not frame.is_library and frame.function != "<module>":
            return False
    return False


def _key(standing: Standing, frames: tuple[Frame, ...]) -> tuple[object, ...]:
    user = _user_frame(frames)
    if standing in (Standing.WAITS, Standing.ASYNC) and user is not None:
        return user.function, user.file, user.line
    calls = [frame for frame in frames if not _NOISE.search(frame.function)]
    return tuple((frame.function, frame.file, 0 if frame.is_library else frame.line) for frame in calls)


def _user_frame(frames: Iterable[Frame]) -> Frame | None:
    return next((frame for frame in frames if not frame.is_library), next(iter(frames), None))


def _called(frames: tuple[Frame, ...], source: str) -> str:
    """Return the function that a stack waits in: the outermost function of a library that the rule knows."""
    if frames and not frames[0].is_library:
        if _STORE.search(source):
            return _STORE_KEY
        if found := _WAITS_IN_C.search(source):
            return f"{found[1]}()"
    named = ""
    for frame in frames:
        if not frame.is_library:
            break
        if _WAITS.search(frame.function) and not _NOISE.search(frame.function):
            named = frame.function.rpartition(".")[2]
    return {"_engine_run_backward": "backward"}.get(named, named)
