"""What every scheduler has to do. A scheduler's test module subclasses `SchedulerContract` and gives it fixtures."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from itertools import pairwise

import pytest
from support.background import in_background
from support.waiting import CLUSTER_PATIENCE, PATIENCE, wait_until

from torchx_tui.backends.abilities import DescribesCluster, DescribesNatively, KeepsLogFiles, RunsCommands, StreamsLogs
from torchx_tui.backends.api import Stream
from torchx_tui.specs.errors import InvalidRunConfigException, JobNotFoundError, SchedulerError
from torchx_tui.specs.handles import parse_app_handle
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState, may_follow

FINAL = (AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED)


class Jobs:
    """Launches apps of one role, "worker", whose replicas run a shell script.

    Args:
        scheduler: where they run.
        cfg: their run options.
        image: an image with ``sh``.
    """

    def __init__(self, scheduler, cfg, image):
        self.scheduler, self.cfg, self.image = scheduler, cfg, image

    def needs(self, ability):
        """Skip the rest of a test if the scheduler lacks an ability."""
        if not isinstance(self.scheduler, ability):
            pytest.skip(f"{self.scheduler.backend} lacks the ability {ability.__name__}")

    def app(self, script, replicas=1, name="contract"):
        resource = Resource(cpu=1, gpu=0, memMB=64)
        args = ["-c", script]
        role = Role("worker", self.image, entrypoint="sh", args=args, num_replicas=replicas, resource=resource)
        return AppDef(name, [role])

    def submit(self, script, replicas=1):
        return self.scheduler.submit(self.app(script, replicas), self.cfg)

    def start(self, script, replicas=1):
        """Launch an app and wait until it runs; return its id."""
        app_id = self.submit(script, replicas)
        wait_until(lambda: self.describe(app_id).state == AppState.RUNNING, f"the start of {app_id}", CLUSTER_PATIENCE)
        return app_id

    def finish(self, script, replicas=1):
        """Launch an app and wait for its end; return its id."""
        app_id = self.submit(script, replicas)
        self.end(app_id)
        return app_id

    def end(self, app_id):
        """Wait for an app's end."""
        wait_until(lambda: self.describe(app_id).state in FINAL, f"the end of {app_id}", CLUSTER_PATIENCE)
        return self.describe(app_id)

    def describe(self, app_id):
        described = self.scheduler.describe(app_id)
        assert described is not None
        return described

    def row(self, app_id):
        return next((row for row in self.scheduler.list() if row.app_id == app_id), None)

    def lines(self, app_id, k=0, **query):
        return list(self.scheduler.log_iter(app_id, "worker", k, **query))


class SchedulerContract:
    """Subclasses set ``image``, override the fixture ``scheduler``, and may override the others."""

    gap: float = 1.6
    """Twice the seconds after which a printed line can be read."""

    image: str = "busybox"
    """An image with ``sh``."""

    cancelled: AppState = AppState.CANCELLED
    """The scheduler's own state of a cancelled app: FAILED where only the Runner remembers the cancel."""

    line_end: str = "\r\n"
    """What becomes of this end of a line: some runtimes keep half of it."""

    has_times: bool = True
    """Whether `describe` returns the times of submission, start and end."""

    has_line_times: bool = True
    """Whether the times of lines are known."""

    has_exit_codes: bool = True
    """Whether `describe` returns the exit codes of replicas."""

    has_replica_counts: bool = True
    """Whether `list` returns the number of replicas."""

    has_named_ids: bool = True
    """Whether an app's id begins with its name."""

    @pytest.fixture
    def scheduler(self):
        raise NotImplementedError

    @pytest.fixture
    def cfg(self):
        return {}

    @pytest.fixture
    def jobs(self, scheduler, cfg):
        return Jobs(scheduler, cfg, self.image)

    def purge_log(self, scheduler, described) -> None:
        """Remove the log of a finished app without the scheduler."""
        pytest.skip("this scheduler's logs cannot be removed alone")

    # Launching

    def test_submit_runs_to_success(self, jobs):
        app_id = jobs.submit("exit 0")
        seen = [AppState.SUBMITTED]

        def ends():
            state = jobs.describe(app_id).state
            assert may_follow(seen[-1], state), f"{state} after {seen}"
            seen.append(state)
            return state in FINAL

        wait_until(ends, f"the end of {app_id}", CLUSTER_PATIENCE)
        assert seen[-1] == AppState.SUCCEEDED
        timeline = jobs.describe(app_id).timeline
        assert all(may_follow(before.state, after.state) for before, after in pairwise(timeline)), timeline
        assert timeline == sorted(timeline, key=lambda change: change.at)

    def test_failure_says_why(self, jobs):
        described = jobs.end(jobs.submit("exit 7"))
        assert described.state == AppState.FAILED
        if self.has_exit_codes:
            assert "7" in described.msg
            assert described.roles_statuses[0].replicas[0].exit_code == 7

    def test_ids_are_unique_and_begin_with_the_name(self, jobs):
        ids = [jobs.submit("exit 0") for _ in range(2)]
        assert ids[0] != ids[1]
        for app_id in ids:
            jobs.end(app_id)
        if self.has_named_ids:
            assert all("contract-" in app_id for app_id in ids)

    def test_dry_run_launches_nothing_and_has_a_text(self, jobs, scheduler, cfg):
        app = jobs.app("exit 0", name="dry")
        info = scheduler.submit_dryrun(app, cfg)
        assert "exit 0" in str(info)
        assert info.app is app
        assert set(info.cfg) >= {name for name, _ in scheduler.run_opts()}
        assert not any("dry-" in row.app_id for row in scheduler.list())

    def test_unknown_run_option_is_refused(self, jobs, scheduler, cfg):
        with pytest.raises(InvalidRunConfigException, match="no_such_option"):
            scheduler.submit_dryrun(jobs.app("exit 0"), {**cfg, "no_such_option": 1})

    def test_every_replica_knows_itself(self, jobs):
        app_id = jobs.finish("echo i am ${replica_id} of ${app_id}", replicas=2)
        for k in range(2):
            (line,) = jobs.lines(app_id, k)
            assert line.startswith(f"i am {k} of ")
            assert line.strip().endswith(app_id.rpartition(":")[2])

    # Watching

    def test_describe_and_list_agree(self, jobs, scheduler):
        app_id = jobs.start("sleep 3600", replicas=2)
        described = jobs.describe(app_id)
        # The list may be a watch's, which is a moment behind the server's own answer.
        wait_until(lambda: jobs.row(app_id).state == described.state, "the same state in the list")
        row = jobs.row(app_id)
        for name in ("state", "name", "user", "submitted_at"):
            assert getattr(row, name) == getattr(described, name)
        if self.has_replica_counts:
            assert row.replicas_wanted == 2
        if row.app_handle != "<NOT_SET>":
            assert parse_app_handle(row.app_handle).app_id == app_id
        assert [len(status.replicas) for status in described.roles_statuses] == [2]
        assert [role.name for role in described.roles] == ["worker"]
        scheduler.cancel(app_id)
        assert jobs.end(app_id).state == self.cancelled
        wait_until(lambda: jobs.row(app_id).state == self.cancelled, "the cancelled state in the list")

    def test_exists(self, jobs, scheduler):
        assert not scheduler.exists("no-such-app")
        assert scheduler.describe("no-such-app") is None
        app_id = jobs.submit("exit 0")
        assert scheduler.exists(app_id)
        jobs.end(app_id)

    def test_times_are_in_order(self, jobs):
        if not self.has_times:
            pytest.skip("this scheduler keeps no times")
        before = time.time()
        described = jobs.end(jobs.submit("exit 0"))
        assert before - 2 <= described.submitted_at <= described.started_at + 1
        assert described.started_at <= described.finished_at <= time.time() + 2

    # Beside a replica

    def test_a_command_runs_beside_a_replica(self, jobs, scheduler):
        jobs.needs(RunsCommands)
        app_id = jobs.start("echo mine; sleep 3600", replicas=2)
        wait_until(lambda: jobs.lines(app_id, 1), "the first line of the second replica")

        def run(*argv, k=0, role="worker", **limit):
            return scheduler.run_beside(app_id, role, k, list(argv), **limit)

        # Arguments are passed unchanged, both outputs and the exit code come back, and the input is empty.
        script = 'printf "%s|" "$@"; cat; echo heard >&2; exit 3'
        answer = run("sh", "-c", script, "sh", "a b", "$HOME", "é", k=1)
        assert (answer.code, answer.out.decode()) == (3, "a b|$HOME|é|")
        assert b"heard" in answer.err
        answer = run("sh", "-c", "head -c 3000000 /dev/zero")
        assert (answer.code, answer.out) == (0, bytes(3_000_000))
        assert jobs.lines(app_id, 1) == ["mine\n"]

        # A busy machine may take longer to begin it.
        for seconds in (3.0, PATIENCE):
            late = run("sh", "-c", "echo begun; sleep 600", timeout_s=seconds)
            if late.out:
                break
        assert (late.code, late.out) == (None, b"begun\n")
        with pytest.raises(SchedulerError, match="no-such-program"):
            run("no-such-program")
        with pytest.raises(ValueError, match="worker"):
            run("true", role="nobody")
        with pytest.raises(ValueError, match="0"):
            run("true", k=7)
        scheduler.cancel(app_id)
        jobs.end(app_id)

        def is_refused():
            try:
                run("true")
            except (SchedulerError, ValueError):
                return True
            return False

        wait_until(is_refused, "the end of the replica")

    # Ending

    def test_cancel_does_not_block_and_may_be_repeated(self, jobs, scheduler):
        # A process that ignores SIGTERM ends after the whole grace period.
        app_id = jobs.start("trap '' TERM; while :; do sleep 0.2; done")
        began = time.monotonic()
        scheduler.cancel(app_id)
        scheduler.cancel(app_id)
        # The grace period is ten seconds.
        assert time.monotonic() - began < 8
        assert jobs.end(app_id).state == self.cancelled
        scheduler.cancel(app_id)
        assert jobs.describe(app_id).state == self.cancelled

    def test_cancel_leaves_what_is_final_or_unknown_alone(self, jobs, scheduler):
        app_id = jobs.finish("exit 0")
        scheduler.cancel(app_id)
        scheduler.cancel("no-such-app")
        assert jobs.end(app_id).state == AppState.SUCCEEDED

    @pytest.mark.parametrize("script", ["exit 0", "sleep 3600"], ids=["final", "running"])
    def test_delete(self, jobs, scheduler, script):
        app_id = jobs.finish(script) if script == "exit 0" else jobs.start(script)
        scheduler.delete(app_id)
        wait_until(lambda: not scheduler.exists(app_id), "the end of the deleted app")
        # A list that is watched learns it a moment later.
        wait_until(lambda: jobs.row(app_id) is None, "the end of its row")
        scheduler.delete(app_id)
        scheduler.delete("no-such-app")

    def test_close_may_be_repeated(self, scheduler):
        scheduler.close()
        scheduler.close()

    # Logs

    def test_lines_keep_their_ends(self, jobs):
        app_id = jobs.finish(r"printf '  one\t\ntwo\r\n\n10%%\r20%%\rno end'")
        expected = ["  one\t\n", f"two{self.line_end}", "\n", "10%\r20%\rno end"]
        assert jobs.lines(app_id) == jobs.lines(app_id, should_tail=True) == expected

    def test_iterators_are_independent_and_take_a_pattern(self, jobs, scheduler):
        app_id = jobs.finish("echo apple; echo pear; echo pineapple")
        first, second = (iter(scheduler.log_iter(app_id, "worker")) for _ in range(2))
        assert [next(lines) for lines in (first, second, first, second)] == ["apple\n", "apple\n", "pear\n", "pear\n"]
        assert jobs.lines(app_id, regex="^apple|pine") == ["apple\n", "pineapple\n"]
        with pytest.raises(ValueError, match="not a regular expression"):
            scheduler.log_iter(app_id, "worker", regex="(apple")

    def test_without_tail_it_ends_at_the_present_end(self, jobs):
        app_id = jobs.start("echo first; sleep 3600")
        wait_until(lambda: jobs.lines(app_id) == ["first\n"], "the first line")

    @pytest.mark.parametrize(
        ("script", "lines"),
        [("for i in 1 2 3; do echo $i; sleep 0.2; done", ["1\n", "2\n", "3\n"]), ("sleep 0.5", [])],
        ids=["lines", "silent"],
    )
    def test_tail_ends_at_the_final_state(self, jobs, script, lines):
        app_id = jobs.submit(script)
        assert jobs.lines(app_id, should_tail=True) == lines
        assert jobs.end(app_id).state == AppState.SUCCEEDED

    def test_close_ends_a_blocked_read(self, jobs, scheduler):
        app_id = jobs.submit("echo once; sleep 3600")
        lines, got = scheduler.log_iter(app_id, "worker", should_tail=True), []
        reading = in_background(lambda: got.extend(lines))
        wait_until(lambda: got, "the first line")
        lines.close()
        reading.result(PATIENCE)
        lines.close()
        assert got == ["once\n"]

    def test_wrong_stream_role_or_replica_is_an_error(self, jobs, scheduler):
        app_id = jobs.finish("exit 0")
        wrong = [("worker", 0, "nonsense", "combined"), ("no-such-role", 0, None, "worker"), ("worker", 5, None, "0")]
        wrong += [("worker", 0, stream, "combined") for stream in set(Stream) - set(scheduler.capabilities.log_streams)]
        for role, k, stream, words in wrong:
            with pytest.raises(ValueError, match=words):
                scheduler.log_iter(app_id, role, k, streams=stream)

    def test_streams_are_parted(self, jobs, scheduler):
        if Stream.STDERR not in scheduler.capabilities.log_streams:
            pytest.skip("this scheduler has one stream only")
        app_id = jobs.finish("echo out; echo err >&2")
        assert jobs.lines(app_id, streams=Stream.STDOUT) == ["out\n"]
        assert jobs.lines(app_id, streams=Stream.STDERR) == ["err\n"]
        assert sorted(jobs.lines(app_id, streams=Stream.COMBINED)) == ["err\n", "out\n"]

    def test_time_range(self, jobs):
        if not self.has_line_times:
            pytest.skip("this scheduler keeps no times of lines")
        # A busy machine may show the first line when the second is there: the gap is widened until it does not.
        for gap in (self.gap, 5 * self.gap, 25 * self.gap):
            app_id = jobs.submit(f"echo early; sleep {gap}; echo late")
            wait_until(lambda app_id=app_id: jobs.lines(app_id), "the first line")
            time.sleep(self.gap / 2)
            between = datetime.now(timezone.utc)
            is_between = jobs.lines(app_id) == ["early\n"]
            jobs.end(app_id)
            if is_between:
                break
        assert jobs.lines(app_id, since=between) == ["late\n"]
        assert jobs.lines(app_id, until=between) == jobs.lines(app_id, until=between, should_tail=True) == ["early\n"]

    def test_line_cursor(self, jobs, scheduler):
        lines = scheduler.log_iter(jobs.finish("for i in 0 1 2 3 4; do echo line $i; done"), "worker")
        if not hasattr(lines, "__getitem__"):
            pytest.skip("this scheduler's iterators have no line cursor")
        assert [lines[3], next(lines), lines[1]] == ["line 3\n", "line 4\n", "line 1\n"]
        with pytest.raises(IndexError):
            lines[5]

    def test_purged_log_raises(self, jobs, scheduler):
        app_id = jobs.finish("echo gone")
        self.purge_log(scheduler, jobs.describe(app_id))
        with pytest.raises(Exception, match=r"\w"):
            jobs.lines(app_id)

    def test_log_files_have_the_lines(self, jobs, scheduler):
        jobs.needs(KeepsLogFiles)
        app_id = jobs.finish("echo here")
        files = scheduler.log_files(app_id, "worker", 0)
        assert set(files) <= set(scheduler.capabilities.log_streams)
        assert "here\n" in [path.read_text() for path in files.values()]
        with pytest.raises(ValueError, match="0"):
            scheduler.log_files(app_id, "worker", 9)
        with pytest.raises(JobNotFoundError):
            scheduler.log_files("no-such-app", "worker", 0)

    def test_log_stream_continues_after_a_cursor(self, jobs, scheduler):
        jobs.needs(StreamsLogs)
        app_id = jobs.finish("for i in 0 1 2; do echo line $i; sleep 0.1; done")
        stream = scheduler.log_stream(app_id, "worker", 0, Stream.COMBINED, notices=False)
        first = next(stream).data
        stream.close()
        rest = scheduler.log_stream(app_id, "worker", 0, Stream.COMBINED, stream.cursor, notices=False)
        assert first + b"".join(record.data for record in rest) == b"line 0\nline 1\nline 2\n"

    def test_native_description(self, jobs, scheduler):
        jobs.needs(DescribesNatively)
        app_id = jobs.finish("exit 0")
        assert app_id.rpartition(":")[2] in scheduler.describe_native(app_id)

    def test_no_more_is_free_than_there_is(self, jobs, scheduler):
        jobs.needs(DescribesCluster)
        status = scheduler.cluster()
        assert status.pools
        for each in (*status.pools, *status.nodes):
            assert 0 <= each.cpus_free <= each.cpus
            assert 0 <= each.memory_free <= each.memory
            assert all(0 <= free <= total for free, total in each.gpus.values())
        assert all(pool.nodes_free + pool.nodes_mixed + pool.nodes_down <= pool.nodes for pool in status.pools)
        assert {name for node in status.nodes for name in node.pools} <= {pool.name for pool in status.pools}
