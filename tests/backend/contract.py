"""What every scheduler has to do. A scheduler's test module subclasses `SchedulerContract` and gives it fixtures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import pytest
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.api import DescribeAppResponse, ListAppResponse, Scheduler, Stream
from torchx_tui.specs import (
    AppDef,
    AppState,
    InvalidRunConfigException,
    Resource,
    Role,
    SchedulerError,
    may_follow,
    parse_app_handle,
)


class SchedulerContract:
    """Subclasses set ``image``, override the fixture ``scheduler``, and may override the others."""

    gap: float = 1.6
    """Seconds, twice those after which a line that was printed has come."""

    image: str = "busybox"
    """An image with ``sh``."""

    cancelled: AppState = AppState.CANCELLED
    """What the scheduler itself says of a cancelled app: FAILED where only the Runner remembers that it was."""

    line_end: str = "\r\n"
    """What becomes of this end of a line: some runtimes keep half of it."""

    @pytest.fixture
    def scheduler(self) -> Scheduler[Any]:
        raise NotImplementedError

    @pytest.fixture
    def cfg(self) -> Mapping[str, Any]:
        return {}

    def purge_log(self, scheduler: Scheduler[Any], described: DescribeAppResponse) -> None:
        """Remove the log of a finished app behind the scheduler's back."""
        pytest.skip("this scheduler's logs cannot be removed alone")

    # What the tests are made of

    def needs(self, scheduler: Scheduler[Any], capability: str) -> None:
        """Skip what is of a capability that the scheduler does not have."""
        if not getattr(scheduler.capabilities, capability):
            pytest.skip(f"capability {capability}: {scheduler.backend} does not have it")

    def app(self, script: str, *, replicas: int = 1, name: str = "contract", role: str = "worker") -> AppDef:
        """Return an app whose replicas run a shell script."""
        resource = Resource(cpu=1, gpu=0, memMB=64)
        made = Role(role, self.image, entrypoint="sh", args=["-c", script], num_replicas=replicas, resource=resource)
        return AppDef(name, [made])

    def ended(self, scheduler: Scheduler[Any], app_id: str) -> DescribeAppResponse:
        """Wait for the app's end."""

        def final() -> DescribeAppResponse | None:
            described = scheduler.describe(app_id)
            assert described is not None
            return described if described.state in (AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED) else None

        return wait_until(final, f"the end of {app_id}")

    def running(self, scheduler: Scheduler[Any], app_id: str) -> DescribeAppResponse:
        """Wait until the app runs."""

        def runs() -> DescribeAppResponse | None:
            described = scheduler.describe(app_id)
            return described if described and described.state == AppState.RUNNING else None

        return wait_until(runs, f"the start of {app_id}")

    def row(self, scheduler: Scheduler[Any], app_id: str) -> ListAppResponse | None:
        return next((row for row in scheduler.list() if row.app_id == app_id), None)

    # Launching

    def test_submit_runs_to_success(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        seen = [AppState.SUBMITTED]

        def ends() -> bool:
            described = scheduler.describe(app_id)
            assert described is not None
            assert may_follow(seen[-1], described.state), f"{described.state} after {seen}"
            seen.append(described.state)
            return seen[-1] in (AppState.SUCCEEDED, AppState.FAILED)

        wait_until(ends, f"the end of {app_id}")
        assert seen[-1] == AppState.SUCCEEDED
        described = self.ended(scheduler, app_id)
        states = [change.state for change in described.timeline]
        assert all(may_follow(before, after) for before, after in pairwise(states)), states
        assert [change.at for change in described.timeline] == sorted(change.at for change in described.timeline)

    def test_failure_says_why(self, scheduler, cfg):
        described = self.ended(scheduler, scheduler.submit(self.app("exit 7"), cfg))
        assert described.state == AppState.FAILED
        self.needs(scheduler, "exit_codes")
        assert "7" in described.msg
        assert described.roles_statuses[0].replicas[0].exit_code == 7

    def test_ids_are_unique_and_begin_with_the_name(self, scheduler, cfg):
        ids = [scheduler.submit(self.app("exit 0"), cfg) for _ in range(2)]
        assert ids[0] != ids[1]
        for app_id in ids:
            self.ended(scheduler, app_id)
        self.needs(scheduler, "named_ids")
        assert all("contract-" in app_id for app_id in ids)

    def test_dry_run_launches_nothing_and_has_a_text(self, scheduler, cfg):
        app = self.app("exit 0", name="dry")
        info = scheduler.submit_dryrun(app, cfg)
        assert "exit 0" in str(info)
        assert info.app is app
        assert set(info.cfg) >= {name for name, _ in scheduler.run_opts()}
        assert not any("dry-" in row.app_id for row in scheduler.list())

    def test_unknown_run_option_is_refused(self, scheduler, cfg):
        with pytest.raises(InvalidRunConfigException, match="no_such_option"):
            scheduler.submit_dryrun(self.app("exit 0"), {**cfg, "no_such_option": 1})

    def test_every_replica_knows_itself(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo i am ${replica_id} of ${app_id}", replicas=2), cfg)
        self.ended(scheduler, app_id)
        for k in range(2):
            (line,) = scheduler.log_iter(app_id, "worker", k)
            assert line.startswith(f"i am {k} of ")
            assert line.strip().endswith(app_id.rpartition(":")[2])

    # Watching

    def test_describe_and_list_agree(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("sleep 3600", replicas=2), cfg)
        described = self.running(scheduler, app_id)
        row = self.row(scheduler, app_id)
        assert row is not None
        assert (row.state, row.name, row.user) == (described.state, described.name, described.user)
        assert row.submitted_at == described.submitted_at
        if scheduler.capabilities.replica_counts:
            assert row.replicas_wanted == 2
        assert [len(status.replicas) for status in described.roles_statuses] == [2]
        assert [role.name for role in described.roles] == ["worker"]
        scheduler.cancel(app_id)
        described = self.ended(scheduler, app_id)
        row = self.row(scheduler, app_id)
        assert row is not None
        assert row.state == described.state == self.cancelled

    # Beside a replica

    def test_a_command_runs_beside_a_replica(self, scheduler, cfg):
        self.needs(scheduler, "run_beside")
        app_id = scheduler.submit(self.app("echo mine; sleep 3600", replicas=2), cfg)
        self.running(scheduler, app_id)
        wait_until(lambda: list(scheduler.log_iter(app_id, "worker", 1)), "the first line of the second replica")
        # Words are not split or expanded, both outputs and the exit code come back, and nothing is there to read.
        script = 'printf "%s|" "$@"; cat; echo heard >&2; exit 3'
        answer = scheduler.run_beside(app_id, "worker", 1, ["sh", "-c", script, "sh", "a b", "$HOME", "é"])
        assert (answer.code, answer.out.decode()) == (3, "a b|$HOME|é|")
        assert b"heard" in answer.err
        # Any number of bytes.
        answer = scheduler.run_beside(app_id, "worker", 0, ["sh", "-c", "head -c 3000000 /dev/zero"])
        assert (answer.code, answer.out) == (0, bytes(3_000_000))
        assert list(scheduler.log_iter(app_id, "worker", 1)) == ["mine\n"]

        # A busy machine takes its time to begin it.
        for seconds in (3.0, PATIENCE):
            late = scheduler.run_beside(app_id, "worker", 0, ["sh", "-c", "echo begun; sleep 600"], timeout_s=seconds)
            if late.out:
                break
        assert (late.code, late.out) == (None, b"begun\n")
        with pytest.raises(SchedulerError, match="no-such-program"):
            scheduler.run_beside(app_id, "worker", 0, ["no-such-program"])
        with pytest.raises(ValueError, match="worker"):
            scheduler.run_beside(app_id, "nobody", 0, ["true"])
        with pytest.raises(ValueError, match="0"):
            scheduler.run_beside(app_id, "worker", 7, ["true"])
        scheduler.cancel(app_id)
        self.ended(scheduler, app_id)

        def is_refused() -> bool:
            try:
                scheduler.run_beside(app_id, "worker", 0, ["true"])
            except (SchedulerError, ValueError):
                return True
            return False

        wait_until(is_refused, "the end of the replica")

    def test_without_the_capability_no_command_runs(self, scheduler):
        if scheduler.capabilities.run_beside:
            pytest.skip("this scheduler runs commands beside replicas")
        with pytest.raises(NotImplementedError):
            scheduler.run_beside("no-such-app", "worker", 0, ["true"])

    def test_exists(self, scheduler, cfg):
        assert not scheduler.exists("no-such-app")
        assert scheduler.describe("no-such-app") is None
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        assert scheduler.exists(app_id)
        self.ended(scheduler, app_id)

    def test_times_are_in_order(self, scheduler, cfg):
        self.needs(scheduler, "times")
        before = time.time()
        described = self.ended(scheduler, scheduler.submit(self.app("exit 0"), cfg))
        assert described.submitted_at is not None
        assert described.started_at is not None
        assert described.finished_at is not None
        assert before - 2 <= described.submitted_at <= described.started_at + 1
        assert described.started_at <= described.finished_at <= time.time() + 2

    # Ending

    def test_cancel_does_not_block_and_may_be_repeated(self, scheduler, cfg):
        # A process that ignores SIGTERM takes the whole grace to end.
        app_id = scheduler.submit(self.app("trap '' TERM; while :; do sleep 0.2; done"), cfg)
        self.running(scheduler, app_id)
        began = time.monotonic()
        scheduler.cancel(app_id)
        scheduler.cancel(app_id)
        # The grace is ten seconds.
        assert time.monotonic() - began < 8
        assert self.ended(scheduler, app_id).state == self.cancelled
        scheduler.cancel(app_id)
        described = scheduler.describe(app_id)
        assert described is not None
        assert described.state == self.cancelled

    def test_cancel_leaves_what_is_final_or_unknown_alone(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        self.ended(scheduler, app_id)
        scheduler.cancel(app_id)
        scheduler.cancel("no-such-app")
        assert self.ended(scheduler, app_id).state == AppState.SUCCEEDED

    @pytest.mark.parametrize("script", ["exit 0", "sleep 3600"], ids=["final", "running"])
    def test_delete(self, scheduler, cfg, script):
        self.needs(scheduler, "delete")
        app_id = scheduler.submit(self.app(script), cfg)
        self.ended(scheduler, app_id) if script == "exit 0" else self.running(scheduler, app_id)
        scheduler.delete(app_id)
        wait_until(lambda: not scheduler.exists(app_id), "the end of what was deleted")
        assert self.row(scheduler, app_id) is None
        scheduler.delete(app_id)
        scheduler.delete("no-such-app")

    def test_close_may_be_repeated(self, scheduler):
        scheduler.close()
        scheduler.close()

    # Logs

    def test_lines_keep_their_ends(self, scheduler, cfg):
        app_id = scheduler.submit(self.app(r"printf '  one\t\ntwo\r\n\n10%%\r20%%\rno end'"), cfg)
        self.ended(scheduler, app_id)
        expected = ["  one\t\n", f"two{self.line_end}", "\n", "10%\r20%\rno end"]
        assert list(scheduler.log_iter(app_id, "worker")) == expected
        assert list(scheduler.log_iter(app_id, "worker", should_tail=True)) == expected

    def test_each_iterator_begins_anew(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo a; echo b"), cfg)
        self.ended(scheduler, app_id)
        first, second = iter(scheduler.log_iter(app_id, "worker")), iter(scheduler.log_iter(app_id, "worker"))
        assert [next(first), next(second), next(first), next(second)] == ["a\n", "a\n", "b\n", "b\n"]

    def test_without_tail_it_ends_at_the_present_end(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo first; sleep 3600"), cfg)
        self.running(scheduler, app_id)
        wait_until(lambda: list(scheduler.log_iter(app_id, "worker")) == ["first\n"], "the first line")

    def test_tail_ends_at_the_final_state(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("for i in 1 2 3; do echo $i; sleep 0.2; done"), cfg)
        assert list(scheduler.log_iter(app_id, "worker", should_tail=True)) == ["1\n", "2\n", "3\n"]
        assert self.ended(scheduler, app_id).state == AppState.SUCCEEDED

    def test_tail_of_a_silent_app_ends_with_it(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("sleep 0.5"), cfg)
        assert list(scheduler.log_iter(app_id, "worker", should_tail=True)) == []

    def test_close_ends_a_blocked_read(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo once; sleep 3600"), cfg)
        lines = scheduler.log_iter(app_id, "worker", should_tail=True)
        got = []
        reader = threading.Thread(target=lambda: got.extend(lines), daemon=True)
        reader.start()
        wait_until(lambda: got, "the first line")
        lines.close()
        reader.join(PATIENCE)
        assert not reader.is_alive()
        lines.close()
        assert got == ["once\n"]

    def test_a_malformed_regex_is_a_value_error(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo apple"), cfg)
        with pytest.raises(ValueError, match="not a regular expression"):
            scheduler.log_iter(app_id, "worker", regex="(apple")
        self.ended(scheduler, app_id)

    def test_regex_chooses_lines(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo apple; echo pear; echo pineapple"), cfg)
        self.ended(scheduler, app_id)
        assert list(scheduler.log_iter(app_id, "worker", regex="^apple|pine")) == ["apple\n", "pineapple\n"]

    def test_wrong_stream_role_or_replica_is_an_error(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        self.ended(scheduler, app_id)
        wrong = "nonsense"
        with pytest.raises(ValueError, match="combined"):
            scheduler.log_iter(app_id, "worker", streams=wrong)
        with pytest.raises(ValueError, match="worker"):
            scheduler.log_iter(app_id, "no-such-role")
        with pytest.raises(ValueError, match="0"):
            scheduler.log_iter(app_id, "worker", 5)
        for stream in set(Stream) - set(scheduler.capabilities.log_streams):
            with pytest.raises(ValueError):
                scheduler.log_iter(app_id, "worker", streams=stream)

    def test_streams_are_parted(self, scheduler, cfg):
        if Stream.STDERR not in scheduler.capabilities.log_streams:
            pytest.skip("this scheduler has one stream only")
        app_id = scheduler.submit(self.app("echo out; echo err >&2"), cfg)
        self.ended(scheduler, app_id)
        assert list(scheduler.log_iter(app_id, "worker", streams=Stream.STDOUT)) == ["out\n"]
        assert list(scheduler.log_iter(app_id, "worker", streams=Stream.STDERR)) == ["err\n"]
        assert sorted(scheduler.log_iter(app_id, "worker", streams=Stream.COMBINED)) == ["err\n", "out\n"]

    def test_time_range(self, scheduler, cfg):
        self.needs(scheduler, "log_time_range")
        # A busy machine may be told of the first line when the second is there: the gap is widened until it is not.
        for gap in (self.gap, 5 * self.gap, 25 * self.gap):
            app_id = scheduler.submit(self.app(f"echo early; sleep {gap}; echo late"), cfg)
            wait_until(lambda app_id=app_id: list(scheduler.log_iter(app_id, "worker")), "the first line")
            time.sleep(self.gap / 2)
            between = datetime.now(timezone.utc)
            is_between = list(scheduler.log_iter(app_id, "worker")) == ["early\n"]
            self.ended(scheduler, app_id)
            if is_between:
                break
        assert list(scheduler.log_iter(app_id, "worker", since=between)) == ["late\n"]
        assert list(scheduler.log_iter(app_id, "worker", until=between)) == ["early\n"]
        assert list(scheduler.log_iter(app_id, "worker", until=between, should_tail=True)) == ["early\n"]

    def test_line_cursor(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("for i in 0 1 2 3 4; do echo line $i; done"), cfg)
        self.ended(scheduler, app_id)
        lines = scheduler.log_iter(app_id, "worker")
        if not hasattr(lines, "__getitem__"):
            pytest.skip("this scheduler's iterators have no line cursor")
        assert lines[3] == "line 3\n"
        assert next(lines) == "line 4\n"
        assert lines[1] == "line 1\n"
        with pytest.raises(IndexError):
            lines[5]

    def test_purged_log_raises(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo gone"), cfg)
        self.purge_log(scheduler, self.ended(scheduler, app_id))
        with pytest.raises(Exception, match=r"\w"):
            list(scheduler.log_iter(app_id, "worker"))

    def test_log_path_is_the_file(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("echo here"), cfg)
        self.ended(scheduler, app_id)
        path = scheduler.log_path(app_id, "worker", 0, scheduler.capabilities.log_streams[0])
        if not scheduler.capabilities.log_files:
            assert path is None
        else:
            assert path is not None
            assert path.read_text() == "here\n"
            assert scheduler.log_path(app_id, "worker", 9, Stream.COMBINED) is None

    def test_native_description(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        self.ended(scheduler, app_id)
        if scheduler.capabilities.native:
            assert app_id.rpartition(":")[2] in scheduler.describe_native(app_id)
        else:
            with pytest.raises(NotImplementedError):
                scheduler.describe_native(app_id)

    def test_handles_of_listed_apps(self, scheduler, cfg):
        app_id = scheduler.submit(self.app("exit 0"), cfg)
        self.ended(scheduler, app_id)
        row = self.row(scheduler, app_id)
        assert row is not None
        if row.app_handle != "<NOT_SET>":
            assert parse_app_handle(row.app_handle).app_id == app_id
