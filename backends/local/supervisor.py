"""The supervisor of one local app: a small process of its own, which outlives the process that launched the app.

It is started by path (``python -I -S supervisor.py``) with its request as JSON on standard input, since every user of a
machine can read an argument list. It answers one line of JSON on standard output, ``{"pid": 1}`` or ``{"error": ""}``,
and then has no parent but init. It runs the replicas, derives each combined.log, writes state.json and ends processes.

Standard library and base/processes.py, all imports at the start: the package may be upgraded while a job runs.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback

if __package__:
    from ...base import processes
else:  # started by path: the package may not be importable
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "base"))
    import processes  # type: ignore[import-not-found,no-redef]

    del sys.path[0]

try:
    import ctypes
except ImportError:  # a Python built without libffi: no child subreaper, no inotify
    ctypes = None

FORMAT = 1
HEARTBEAT_SECONDS = 5.0
_IDLE_SECONDS = 1.0  # between two checks for a cancel request that came without a signal
_QUEUE_SECONDS = 0.3  # between two checks whether a queued app can start, and between two saves
_ENDING_SECONDS = 0.05  # between two rounds of ending processes
_COPY_SECONDS = 0.01  # between two rounds of copying: a flood is copied in blocks, not line by line
_PARTIAL_SECONDS = 0.25  # a line without an end, such as a progress bar or a prompt, is copied after this long
CHUNK = 1 << 18
"""The most bytes of a stream that are copied at once."""
_RESERVED_FILES = 32  # descriptors for everything but logs: state.json, /proc, pipes of helpers
_FILES_PER_LOG = 4
_LINUX = sys.platform.startswith("linux")
_FOREVER = float("inf")


# ---- Files


def replace_file(path: str, data: bytes, sync: bool = True) -> None:
    """Replace a file atomically, for this user only. On OSError it is unchanged."""
    beside = f"{path}.{os.getpid()}.{time.monotonic_ns()}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, f"{beside}.folder")  # no file can replace a folder
        os.replace(beside, path)
    except OSError:
        os.unlink(beside)
        raise


def read_note(path: str) -> dict:
    """Return the JSON object in a small file of this user, else an empty one. A pipe does not block it."""
    flags = os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with open(path, "rb", opener=lambda name, more: os.open(name, more | flags)) as file:
            note = json.loads(file.read(CHUNK))
            return note if isinstance(note, dict) and processes.is_own(path) else {}
    except (OSError, ValueError, RecursionError):
        return {}


class CombinedLog:
    """Copies whole lines of both streams of one replica to combined.log, in the order in which they came.

    Beside it combined.index has one line for each run of bytes: ``<offset> <epoch seconds> <o|e>``. It is written
    before the bytes, so that after a crash every byte of combined.log has its record.

    Without ``keep_open`` its files are open only during a copy, since this process may have few descriptors.
    """

    def __init__(self, spec: dict[str, str], keep_open: bool) -> None:
        append, index = os.O_WRONLY | os.O_APPEND, os.path.splitext(spec["combined"])[0] + ".index"
        self.paths = [(spec["stdout"], os.O_RDONLY), (spec["stderr"], os.O_RDONLY)]
        self.paths += [(spec["combined"], append), (index, append)]
        self.files: list[int] = []  # the open ones of ``paths``
        self.size = self.index_size = 0
        self.copied = [0, 0]  # bytes of each stream
        self.partial_since = [0.0, 0.0]  # since when each stream has a line without an end, 0.0 without one
        self.full_since = 0.0  # since when the disk is full, 0.0 while it is not
        self.at_line_start = True
        self.keep_open = keep_open
        self._open(os.O_CREAT)
        self._close_unless_kept()

    def _open(self, more_flags: int = 0) -> None:
        try:
            for path, flags in self.paths[len(self.files) :]:
                self.files.append(os.open(path, flags | more_flags, 0o600))
        except OSError:
            self.close()
            raise

    def _close_unless_kept(self) -> None:
        if not self.keep_open:
            self.close()

    def close(self) -> None:
        """Close the files; the next copy opens them again."""
        while self.files:
            os.close(self.files.pop())

    def copy(self, last: bool = False) -> float:
        """Copy new lines, partial ones too if ``last``; return the seconds until the next copy, inf for a write."""
        try:
            self._open()
            wait = min(self._copy_stream(0, last), self._copy_stream(1, last))
            if self.full_since and (self.at_line_start or last):
                self._note_full_disk()
            return wait
        except OSError as error:  # what was not written is copied later
            self.note_error(error)
            return _IDLE_SECONDS
        finally:
            self._close_unless_kept()

    def note_error(self, error: OSError) -> None:
        """Remember since when the disk is full: lines that the replica writes meanwhile are lost."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self.full_since = self.full_since or time.time()

    def _note_full_disk(self) -> None:
        now, since = time.time(), self.full_since
        first, end = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (since, now))
        text = f"torchx-tui: the disk was full from {first} to {end}: lines of this log may be missing\n"
        self._append(b"e", (text if self.at_line_start else f"\n{text}").encode(), now)
        self.full_since = 0.0

    def _copy_stream(self, at: int, last: bool) -> float:
        data = os.pread(self.files[at], CHUNK, self.copied[at])
        if not data:
            self.partial_since[at] = 0.0
            if os.fstat(self.files[at]).st_size < self.copied[at]:
                self.copied[at] = 0  # it was truncated: start again
            return _FOREVER
        now, end, full = time.time(), data.rfind(b"\n") + 1, len(data) == CHUNK
        if end == 0:
            self.partial_since[at] = self.partial_since[at] or now
            left = self.partial_since[at] + _PARTIAL_SECONDS - now
            if 0 < left <= _PARTIAL_SECONDS and not (last or full):
                return left
            end = len(data)
        self.partial_since[at] = now if end < len(data) else 0.0
        self.copied[at] += self._append(b"oe"[at : at + 1], data[:end], now)
        return 0.0 if full or (last and end < len(data)) else _PARTIAL_SECONDS if end < len(data) else _FOREVER

    def _append(self, code: bytes, data: bytes, now: float) -> int:
        combined, index = self.files[2:]
        size = os.fstat(combined).st_size
        if size < self.size:  # it was truncated: the records of its old bytes would give the new ones their times
            os.ftruncate(index, 0)
            self.size, self.index_size = size, 0
        record = b"%d %.3f %b\n" % (self.size, now, code)
        try:
            if os.write(index, record) < len(record):
                raise OSError(errno.ENOSPC, "only a part of the record was written")
        except OSError:
            os.ftruncate(index, self.index_size)
            raise
        self.index_size += len(record)
        written = os.write(combined, data)
        self.size += written
        self.at_line_start = data[:written].endswith(b"\n") if written else self.at_line_start
        return written


class Watch:
    """Reports which files were written to, by inotify(7); without inotify, that all may have been."""

    def __init__(self) -> None:
        self.file, self._add = -1, None
        self._numbers: dict[int, int] = {}
        if ctypes and _LINUX:
            library = ctypes.CDLL(None, use_errno=True)
            library.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become our children
            self.file, self._add = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), library.inotify_add_watch

    def add(self, path: str, number: int) -> None:
        """Report ``number`` when the file at ``path`` is written to."""
        watch = self._add(self.file, os.fsencode(path), 2) if self._add and self.file >= 0 else -1  # IN_MODIFY
        if watch >= 0:
            self._numbers[watch] = number
        elif self.file >= 0:  # this user has no watches left: check all files from now on
            os.close(self.file)
            self.file = -1

    def written(self) -> set[int] | None:
        """Return the numbers of the files written to since the last call; None if unknown."""
        if self.file < 0:
            return None
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:
            return set()
        # struct inotify_event: int wd, uint32 mask, cookie, len; it has a name only where a folder is watched
        watches = {int.from_bytes(data[at : at + 4], sys.byteorder, signed=True) for at in range(0, len(data), 16)}
        return {number for watch, number in self._numbers.items() if watch in watches or -1 in watches}  # -1: overflow


# ---- The app


class Supervisor:
    """Runs one app from its request to its final state."""

    def __init__(self, request: dict) -> None:
        self.request, self.state, self.folder = request, request["state"], request["folder"]
        self.replicas: dict[int, int] = {}  # pid of each running one to its index in the state
        self.processes: list[subprocess.Popen] = []  # kept, since a forgotten Popen warns
        self.helpers: set[int] = set()  # process groups that may serve other jobs too
        self.logs: dict[int, CombinedLog] = {}
        self.copy_at: dict[int, float] = {}  # when to copy which log
        self.stdin = request.get("stdin", subprocess.DEVNULL)  # a descriptor, for an app of one replica
        self.queued = not request["adopt"]
        self.terminated = self.childless = self.changed = self.failed = False
        self.ending_since = self.saved_at = self.checked_at = 0.0
        self.terminated_groups: set[int] = set()  # process groups that were sent SIGTERM
        self.stubborn: list[int] = []  # processes that outlive SIGKILL: another user's, or stuck in the kernel
        self.watch = Watch()
        self.woken, wake = os.pipe()
        for end in (self.woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # Handlers, not SIG_IGN: what is ignored here would be ignored in the replicas.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        self.terminated = self.terminated or number in (signal.SIGTERM, signal.SIGINT)

    def prepare(self) -> None:
        """Write which process supervises the app; OSError when a folder is read-only or full."""
        own = processes.read_process(os.getpid())
        identity = {"host": os.uname().nodename, "boot_id": processes.boot_id(), "pid": os.getpid()}
        identity["pid_started"] = own.start if own else ""
        self.state.update(identity)
        if not self.request["adopt"]:
            self.enter("SUBMITTED")
            replace_file(self.request["turn"], json.dumps(identity).encode(), sync=False)
        self.save(sync=True)

    def enter(self, state: str) -> None:
        self.state["state"] = state
        self.state["timeline"].append([state, time.time()])
        self.changed = True

    def save(self, sync: bool = False) -> None:
        """Write state.json; OSError when that is not possible now."""
        self.state["heartbeat"] = time.time()
        self.saved_at, self.changed = time.monotonic(), False
        replace_file(os.path.join(self.folder, "state.json"), json.dumps(self.state).encode(), sync)

    def run(self) -> None:
        """Wait for the app's turn, run it, and return when its final state is on disk."""
        while not self.advance():
            now = time.monotonic()
            if now - self.saved_at >= (_QUEUE_SECONDS if self.changed else HEARTBEAT_SECONDS):
                try:
                    self.save()
                    self.copy_at.update({number: 0.0 for number, log in self.logs.items() if log.full_since})
                except OSError as error:
                    self.changed = True
                    for log in self.logs.values():
                        log.note_error(error)
            self.sleep(now)
            self.reap()
            written = self.watch.written()
            due = {number for number, at in self.copy_at.items() if at <= now or written is None}
            for number in due | (written or set()):
                self.copy_at[number] = now + self.logs[number].copy()
        self.finish()

    def advance(self) -> bool:
        """Start the replicas, or end processes, if it is time; return whether the app has ended."""
        self.check_cancel()
        if self.state["cancel"] or self.failed:
            return self.end_processes(everything=True)
        if self.queued and not self.must_wait():
            self.start()
            return False
        return not (self.queued or self.replicas) and self.end_processes(everything=False)

    def check_cancel(self) -> None:
        """Accept a request to cancel: a signal, or a file of a process on another machine."""
        now, path = time.monotonic(), os.path.join(self.folder, "cancel.json")
        asked, self.terminated = self.terminated, False
        if now - self.checked_at >= _IDLE_SECONDS:
            asked, self.checked_at = asked or processes.is_own(path), now
        if asked and (self.queued or self.replicas) and not self.state["cancel"]:
            note = read_note(path)
            valid = isinstance(note.get("by"), str) and type(note.get("at")) in (int, float) and 0 <= note["at"] < 1e11
            self.state["cancel"] = note if valid else {"by": "", "at": time.time()}
            self.changed = True

    def must_wait(self) -> bool:
        """Return whether as many apps as may run at once were submitted before this one."""
        folder, mine = os.path.split(self.request["turn"])
        most, before = self.request["max_running"], []
        for name in sorted(os.listdir(folder)) if most else ():
            if name >= mine:
                break
            other = read_note(os.path.join(folder, name))
            here = (other.get("host"), other.get("boot_id")) == (self.state["host"], self.state["boot_id"])
            if here and type(other.get("pid")) is int and processes.is_running(other["pid"], other.get("pid_started")):
                before.append(name.partition("-")[2])
        before = before if len(before) >= most else []
        if before and self.state["state"] != "PENDING":
            self.enter("PENDING")
        self.changed = self.changed or before != self.state["waits_for"]
        self.state["waits_for"] = before
        return bool(before)

    def start(self) -> None:
        """Start the replicas; if one cannot be started, all end."""
        self.queued = False
        self.state["started_at"] = time.time()
        for number, (spec, replica) in enumerate(zip(self.request["replicas"], self.state["replicas"], strict=True)):
            try:
                replica.update(pid=self.spawn(spec), started_at=time.time())
                self.replicas[replica["pid"]] = number
            except (OSError, ValueError) as error:
                replica["not_started"] = [getattr(error, "errno", 0), getattr(error, "filename", ""), str(error)]
                self.failed = True
                return
        if self.stdin >= 0:
            os.close(self.stdin)  # the writer of a pipe gets SIGPIPE once the only reader ends
        for pid, number in self.replicas.items():
            process = processes.read_process(pid)
            self.state["replicas"][number]["pid_started"] = process.start if process else ""
        self.enter("RUNNING")
        self.saved_at = 0.0  # save at once
        self.start_helper("start")
        kept_open = (self.raise_file_limit() - _RESERVED_FILES) // _FILES_PER_LOG
        for number, spec in enumerate(self.request["replicas"]):
            try:
                self.logs[number] = CombinedLog(spec, keep_open=number < kept_open)
            except OSError:
                continue  # readers read both streams instead
            self.watch.add(spec["stdout"], number)
            self.watch.add(spec["stderr"], number)
            self.copy_at[number] = 0.0

    def raise_file_limit(self) -> int:
        """Raise the soft limit of open files to the hard limit and return it; replicas started later inherit it."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if _LINUX:  # elsewhere the hard limit may be more than the system accepts
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        return 1 << 20 if soft == resource.RLIM_INFINITY else soft

    def spawn(self, spec: dict) -> int:
        """Start one replica in a session of its own and return its pid.

        OSError when a command, folder or file cannot be used.
        """
        flags, env = os.O_WRONLY | os.O_CREAT | os.O_APPEND, {**os.environ, **spec["env"]}
        out, err = (os.open(spec[name], flags, 0o600) for name in ("stdout", "stderr"))
        start = functools.partial(subprocess.Popen, stdin=self.stdin, start_new_session=True)
        try:
            process = start(spec["args"], cwd=spec["cwd"], env=env, stdout=out, stderr=err)
        finally:
            os.close(out)
            os.close(err)
        self.processes.append(process)
        return process.pid

    def start_helper(self, moment: str) -> None:
        """Start the program that sends notifications of this moment, if there is one, and do not wait for it."""
        helper = self.request.get("helpers", {}).get(moment)
        if helper is None:
            return
        data, (out, into), nothing = helper["stdin"].encode(), os.pipe(), subprocess.DEVNULL
        try:
            os.set_blocking(into, False)
            if len(data) <= os.write(into, data):  # a pipe takes 64 KB at once
                start = functools.partial(subprocess.Popen, stdout=nothing, stderr=nothing, start_new_session=True)
                process = start(helper["argv"], stdin=out, cwd="/")
                self.processes.append(process)
                self.helpers.add(process.pid)
        except OSError:
            pass  # a notification is not worth the job
        finally:
            os.close(out)
            os.close(into)

    def sleep(self, now: float) -> None:
        """Sleep until there is something to do."""
        wait = _QUEUE_SECONDS if self.queued or self.changed else _IDLE_SECONDS
        wait = _COPY_SECONDS * 2 if self.watch.file < 0 and self.logs else wait
        wait = _ENDING_SECONDS if self.ending_since and not self.stubborn else wait
        wait = min([wait, *(at - now for at in self.copy_at.values())])
        files = [self.woken] + ([self.watch.file] if self.watch.file >= 0 else [])
        ready = select.select(files, [], [], max(0.0, wait))[0]
        if self.woken in ready:
            os.read(self.woken, 1 << 12)
        elif ready and wait > 0:  # not when a flood has left something to copy
            time.sleep(_COPY_SECONDS)

    def reap(self) -> None:
        """Collect the exit codes of replicas and of orphans that ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            number = self.replicas.pop(pid, None)
            if number is not None:
                ended = {"exit_code": os.waitstatus_to_exitcode(status), "finished_at": time.time()}
                self.state["replicas"][number].update(ended)
                self.changed = True
                if number in self.logs:
                    self.logs[number].keep_open, self.copy_at[number] = False, 0.0

    def end_processes(self, everything: bool) -> bool:
        """Send SIGTERM to the app's processes, and SIGKILL after the grace; return whether none is left.

        Without ``everything``, only to those that ended replicas left behind with the app's id (torchrun's workers).
        """
        if not everything and self.childless and _LINUX:
            return True
        adopted = self.state["replicas"] if self.request["adopt"] else ()
        roots = {os.getpid(), *(it["pid"] for it in adopted if processes.is_running(it["pid"], it["pid_started"]))}
        found = processes.job_processes(self.state["job_id"], roots if everything else set())
        left = [process for process in found if process.group not in self.helpers]
        now = time.monotonic()
        if left and not self.ending_since:
            self.ending_since = now
            if not everything:
                self.state["notes"].append(f"ended {len(left)} processes that its replicas left behind")
        pids = {process.pid for process in left}
        groups = {process.group for process in left if process.parent not in pids} - self.terminated_groups
        self.terminated_groups |= groups
        for process in left:
            if now - self.ending_since >= self.request["grace"]:
                processes.send_signal(process, signal.SIGKILL)
            elif process.group in groups:  # the others are signalled by their parent, or once it has ended
                processes.send_signal(process, signal.SIGTERM)
                processes.send_signal(process, signal.SIGCONT)
        is_late = now - self.ending_since >= self.request["grace"] + _IDLE_SECONDS
        stubborn = [process.pid for process in left] if is_late else []
        if stubborn != self.stubborn:
            self.stubborn, self.changed = stubborn, True
            self.state["not_ended"] = [processes.describe_process(pid) for pid in stubborn]
        return not (left or self.replicas)

    def finish(self) -> None:
        """Write the final state, however long the disk is full."""
        failed = self.failed or any(replica["exit_code"] for replica in self.state["replicas"])
        self.state.update(finished_at=time.time(), waits_for=[])
        self.enter("CANCELLED" if self.state["cancel"] else "FAILED" if failed else "SUCCEEDED")
        success = self.torchx_record()
        until = time.monotonic() + 2 * _IDLE_SECONDS
        while os.path.isdir(self.folder):
            while 0.0 in [log.copy(last=True) for log in self.logs.values()] and time.monotonic() < until:
                pass
            try:
                replace_file(os.path.join(self.folder, "SUCCESS"), json.dumps(success, indent=2).encode())
                self.save(sync=True)
                self.start_helper("end")
                break
            except OSError:
                time.sleep(_IDLE_SECONDS)
        turn = self.request.get("turn", "")
        if os.path.exists(turn):
            os.unlink(turn)
        while os.path.isdir(self.folder) and 0.0 in [log.copy(last=True) for log in self.logs.values()]:
            pass  # the rest of a flood, which readers meanwhile read from the streams' own files

    def torchx_record(self) -> dict:
        """Make the content of the file SUCCESS, as TorchX writes it."""
        roles: dict[str, list[dict]] = {}
        for replica in self.state["replicas"]:
            folder = os.path.join(self.folder, replica["role"], str(replica["id"]))
            entry = {"replica_id": replica["id"], "pid": replica["pid"], "exitcode": replica["exit_code"]}
            for name in ("stdout", "stderr"):
                entry[name] = os.path.join(folder, f"{name}.log")
            roles.setdefault(replica["role"], []).append({**entry, "error_file": replica.get("error_file")})
        record = {"app_id": os.path.basename(self.folder), "log_dir": self.folder, "final_state": self.state["state"]}
        return {**record, "last_updated": time.time(), "roles": roles}


def main() -> None:
    """Detach from the launcher, read the request, answer it, run the app."""
    if os.fork():
        os._exit(0)  # the launcher waits for this process, so that no zombie is left to it
    text = sys.stdin.buffer.read()
    if not text:
        return  # the launcher died
    supervisor = Supervisor(json.loads(text))
    try:
        supervisor.prepare()
        answer = {"pid": os.getpid()}
    except OSError as error:
        answer = {"error": f"{error.strerror}: {error.filename or supervisor.folder}"}
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
    except OSError:
        pass  # the launcher died: the app continues
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    if "pid" in answer:
        os.chdir("/")
        try:
            supervisor.run()
        except BaseException:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
            with open(os.open(os.path.join(supervisor.folder, "supervisor.log"), flags, 0o600), "a") as file:
                traceback.print_exc(file=file)
            raise


if __name__ == "__main__":
    main()
