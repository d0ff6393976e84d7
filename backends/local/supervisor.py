"""The supervisor of one local app: a small process of its own, which outlives whoever launched the app.

It is started by path (``python -I -S supervisor.py``) with its request as JSON on standard input, since every user of a
machine can read an argument list. It answers one line of JSON on standard output, ``{"pid": 1}`` or ``{"error": ""}``,
and then belongs to nobody. It runs the replicas, derives each combined.log, keeps state.json and ends what it must.

Standard library only, in one file, all imports here at the start: the package may be upgraded while a job runs.
Readers import the first half of this file, so that both sides mean the same by "that process".
"""

from __future__ import annotations

import errno
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections import namedtuple

try:
    import ctypes
except ImportError:  # a Python built without libffi: no child subreaper, no inotify
    ctypes = None

FORMAT = 1
JOB_ID = "TORCHX_JOB_ID"
HEARTBEAT_SECONDS = 5.0
_LOOK_SECONDS = 1.0  # between two looks for a cancel request that came without a signal
_TURN_SECONDS = 0.3  # between two looks whether it is a queued app's turn
_COPY_SECONDS = 0.01  # between two rounds of copying: a flood is copied in blocks, not line by line
_PARTIAL_SECONDS = 1.0  # a line without an end is copied after this long
_PROGRESS_SECONDS = 0.2  # the same for one with a carriage return: a progress bar
_CHUNK = 1 << 18
_LINUX = sys.platform.startswith("linux")
_FOREVER = float("inf")


# ---- This machine and its processes

# ``start`` tells a process from a later one of the same number.
Process = namedtuple("Process", "pid parent group start zombie")


def host_name() -> str:
    """Return this machine's name."""
    return os.uname().nodename


def boot_id() -> str:
    """Return what differs after each start of this machine, "" where the system does not tell."""
    if not _LINUX:
        return _output("sysctl", "-n", "kern.bootsessionuuid").strip()
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _listed(*selection: str) -> dict[int, Process]:
    lines = _output("ps", *selection, "-o", "pid=,ppid=,pgid=,stat=,lstart=").splitlines()
    rows = [line.split(None, 4) for line in lines]
    return {int(row[0]): Process(*map(int, row[:3]), row[4].strip(), row[3].startswith("Z")) for row in rows}


def read_process(pid: int) -> Process | None:
    """Return process ``pid``, None when there is none. Source of the fields: proc_pid_stat(5)."""
    if not _LINUX:
        return _listed("-p", str(pid)).get(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[2]), fields[19].decode(), fields[0] in (b"Z", b"X"))


def is_running(pid: int | None, start: str | None) -> bool:
    """Tell whether the process that had this number and start time still runs."""
    process = read_process(pid) if pid else None
    return process is not None and process.start == start and not process.zombie


def has_job_id(pid: int, job_id: str) -> bool:
    """Tell whether the process was started with ``TORCHX_JOB_ID=job_id`` in its environment."""
    wanted = f"{JOB_ID}={job_id}"
    if not _LINUX:
        return wanted in _output("ps", "-E", "-ww", "-o", "command=", "-p", str(pid)).split()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return os.fsencode(wanted) in file.read().split(b"\0")
    except OSError:
        return False


def job_processes(job_id: str, roots: set[int]) -> list[Process]:
    """Return what lives of a job, this process excepted: ``roots``, their descendants, and whoever carries its id."""
    if _LINUX:
        found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
        table = {process.pid: process for process in found if process}
    else:
        table = _listed("-A")
    inside, more = set(), roots
    while more:
        inside |= more
        more = {pid for pid, process in table.items() if process.parent in inside} - inside
    live = (process for pid, process in table.items() if pid != os.getpid() and not process.zombie)
    return [process for process in live if process.pid in inside or has_job_id(process.pid, job_id)]


def send_signal(process: Process, number: int) -> None:
    """Signal the process, unless it ended or another one has its number by now."""
    held = -1
    try:
        # While held open it means this process, whatever becomes of its number (Linux 5.3).
        held = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else -1
        if is_running(process.pid, process.start):
            signal.pidfd_send_signal(held, number) if held >= 0 else os.kill(process.pid, number)
    except OSError:
        pass
    finally:
        if held >= 0:
            os.close(held)


# ---- Files


def replace_file(path: str, data: bytes, sync: bool = True) -> None:
    """Replace ``path`` at once, for this user only: a reader, or a crash, finds the old content or the new one.

    Raises:
        OSError: it cannot be written; ``path`` is as it was.
    """
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        remove(beside)
        raise


def remove(path: str) -> None:
    """Remove a file or a whole folder, as far as that is allowed; links are not followed."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            for name in os.listdir(path):
                remove(os.path.join(path, name))
            os.rmdir(path)
        else:
            os.unlink(path)
    except OSError:
        pass


class CombinedLog:
    """Derives one replica's combined.log: whole lines of both streams in the order in which they came.

    Beside it combined.index has one line for each run of bytes: ``<offset> <epoch seconds> <o|e>``. It is written
    before the bytes, so that after a crash every byte of combined.log has its record.
    """

    def __init__(self, files: dict[str, str], mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.data = os.open(files["combined"], flags, mode)
        self.index = os.open(os.path.splitext(files["combined"])[0] + ".index", flags, mode)
        self.size = self.index_size = 0
        self.files = [(os.open(files[name], os.O_RDONLY), name[3:4].encode()) for name in ("stdout", "stderr")]
        self.copied = [0, 0]  # bytes of each stream
        self.partial_since = [0.0, 0.0]  # since when each stream has a line without an end, 0.0 without one

    def copy(self, last: bool = False) -> float:
        """Copy what came; return in how many seconds to come again, infinity when only the next write matters.

        Args:
            last: nothing comes any more, so a line without an end is copied too.
        """
        try:
            return min(self._copy_stream(0, last), self._copy_stream(1, last))
        except OSError:  # the disk is full: what was not written is copied later
            return _LOOK_SECONDS

    def _copy_stream(self, at: int, last: bool) -> float:
        file, code = self.files[at]
        data = os.pread(file, _CHUNK, self.copied[at])
        if not data:
            self.partial_since[at] = 0.0
            if os.fstat(file).st_size < self.copied[at]:
                self.copied[at] = 0  # someone truncated it: begin anew
            return _FOREVER
        now, end, full = time.time(), data.rfind(b"\n") + 1, len(data) == _CHUNK
        if end == 0:
            self.partial_since[at] = self.partial_since[at] or now
            left = self.partial_since[at] + (_PROGRESS_SECONDS if b"\r" in data else _PARTIAL_SECONDS) - now
            if left > 0 and not (last or full):
                return left
            end = len(data)
        self.partial_since[at] = now if end < len(data) else 0.0
        self.copied[at] += self._append(code, data[:end], now)
        return 0.0 if full or (last and end < len(data)) else _PROGRESS_SECONDS if end < len(data) else _FOREVER

    def _append(self, code: bytes, data: bytes, now: float) -> int:
        record = b"%d %.3f %b\n" % (self.size, now, code)
        try:
            written = os.write(self.index, record)
            if written < len(record):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self.index, self.index_size)
            raise
        self.index_size += written
        written = os.write(self.data, data)
        self.size += written
        return written


class Watch:
    """Tells which files were written to (inotify(7)); where that cannot be had, says that all may have been."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True) if ctypes and _LINUX else None
        self.file, self._add = -1, None
        self._numbers: dict[int, int] = {}
        if library:
            library.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what loses its parent becomes our child
            self.file, self._add = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), library.inotify_add_watch

    def add(self, path: str, number: int) -> None:
        """Report ``number`` when the file at ``path`` is written to."""
        watch = self._add(self.file, os.fsencode(path), 2) if self._add and self.file >= 0 else -1  # IN_MODIFY
        if watch >= 0:
            self._numbers[watch] = number
        elif self.file >= 0:  # this user has no watches left: look at all files from now on
            os.close(self.file)
            self.file = -1

    def written(self) -> set[int] | None:
        """Return what was written to since the last call, None when it cannot be known."""
        if self.file < 0:
            return None
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:
            return set()
        watches = set()
        while data:  # struct inotify_event: int wd, uint32 mask, cookie, len, char name[len]
            watches.add(int.from_bytes(data[:4], sys.byteorder, signed=True))
            data = data[16 + int.from_bytes(data[12:16], sys.byteorder) :]
        # -1 says that the queue overflowed.
        return set(self._numbers.values()) if -1 in watches else {self._numbers[watch] for watch in watches}


# ---- The app


class Supervisor:
    """Runs one app from its request to its final state."""

    def __init__(self, request: dict) -> None:
        self.request, self.state, self.folder = request, request["state"], request["folder"]
        self.mode = 0o600 if request["private"] else 0o666
        self.replicas: dict[int, dict] = {}  # the running ones, by pid
        self.processes: list[subprocess.Popen] = []  # kept, since a forgotten Popen warns
        self.logs: dict[int, CombinedLog] = {}
        self.copy_at: dict[int, float] = {}  # when to look at which log
        self.queued = not request["adopt"]
        self.terminated = self.childless = False
        self.failure = ""
        self.ending_since = self.saved_at = self.looked_at = 0.0
        self.changed = False
        self.told: set[int] = set()  # process groups that were asked to end
        self.watch = Watch()
        self.woken, wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        # Handlers, not SIG_IGN: what is ignored here would be ignored in the replicas.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: object) -> None:
        self.terminated = self.terminated or number in (signal.SIGTERM, signal.SIGINT)

    def prepare(self) -> None:
        """Write all that makes the app known, or nothing.

        Raises:
            OSError: a folder is read-only, the disk is full, or the app exists.
        """
        mine = read_process(os.getpid())
        who = {"host": host_name(), "boot_id": boot_id(), "pid": os.getpid(), "pid_started": mine.start if mine else ""}
        self.state.update(who)
        if self.request["adopt"]:
            self.save(sync=True)
            return
        mode = 0o700 if self.request["private"] else 0o777
        os.makedirs(os.path.dirname(self.folder), mode, exist_ok=True)
        os.mkdir(self.folder, mode)
        try:
            for files in self.request["replicas"]:
                os.makedirs(os.path.dirname(files["stdout"]), mode, exist_ok=True)
            self.enter("SUBMITTED")
            self.save(sync=True)
            record = {"format": FORMAT, "folder": self.folder}
            replace_file(self.request["record"], json.dumps(record).encode())
            replace_file(self.request["turn"], json.dumps(who).encode(), sync=False)
        except OSError:
            for path in (self.folder, self.request["record"], self.request["turn"]):
                remove(path)
            raise

    def enter(self, state: str) -> None:
        """Go on to ``state``."""
        self.state["state"] = state
        self.state["timeline"].append([state, time.time()])
        self.changed = True

    def save(self, sync: bool = False) -> None:
        """Write state.json.

        Raises:
            OSError: it cannot be written, perhaps for a while.
        """
        self.state["heartbeat"] = time.time()
        self.saved_at = time.monotonic()
        replace_file(os.path.join(self.folder, "state.json"), json.dumps(self.state).encode(), sync)
        self.changed = False

    def run(self) -> None:
        """Wait for the app's turn, run it, and come back when its final state is on disk."""
        while not self.is_over():
            now = time.monotonic()
            if now - self.saved_at >= (_TURN_SECONDS if self.changed else HEARTBEAT_SECONDS):
                try:
                    self.save()
                except OSError:
                    pass  # it is tried again at the next change or heartbeat, and at the end until it works
            self.sleep(now)
            self.reap()
            written = self.watch.written()
            due = {number for number, at in self.copy_at.items() if at <= now or written is None}
            for number in due | (written or set()):
                self.copy_at[number] = now + self.logs[number].copy()
        self.finish()

    def is_over(self) -> bool:
        """Do what is next; tell whether nothing is left to do."""
        self.look_for_cancel()
        if self.state["cancel"] or self.failure:
            return self.end_processes(everything=True)
        if self.queued and not self.is_waiting():
            self.start()
            return False
        return not (self.queued or self.replicas) and self.end_processes(everything=False)

    def look_for_cancel(self) -> None:
        """Take a request to cancel: a signal, or a file from a machine that cannot signal."""
        now, path = time.monotonic(), os.path.join(self.folder, "cancel.json")
        if not self.terminated and (now - self.looked_at < _LOOK_SECONDS or not os.path.exists(path)):
            return
        self.looked_at, self.terminated = now, False
        if (self.queued or self.replicas) and not self.state["cancel"]:
            try:
                with open(path) as file:
                    self.state["cancel"] = json.load(file)
            except (OSError, ValueError):
                self.state["cancel"] = {"by": "", "at": time.time()}
            self.changed = True

    def is_waiting(self) -> bool:
        """Tell whether as many apps as may run at once were there before this one."""
        folder, mine = os.path.split(self.request["turn"])
        most, before = self.request["max_running"], []
        for name in sorted(os.listdir(folder)) if most else ():
            if name >= mine:
                break
            try:
                with open(os.path.join(folder, name)) as file:
                    other = json.load(file)
            except (OSError, ValueError):
                continue
            here = (other["host"], other["boot_id"]) == (self.state["host"], self.state["boot_id"])
            if here and is_running(other["pid"], other["pid_started"]):
                before.append(name.partition("-")[2])
        before = before if len(before) >= most else []
        if before and self.state["state"] != "PENDING":
            self.enter("PENDING")
        self.changed = self.changed or before != self.state["waits_for"]
        self.state["waits_for"] = before
        return bool(before)

    def start(self) -> None:
        """Start the replicas; when one cannot be started, all end."""
        self.queued = False
        self.state["started_at"] = time.time()
        for spec, replica in zip(self.request["replicas"], self.state["replicas"]):
            try:
                self.spawn(spec, replica)
            except (OSError, ValueError) as error:
                self.failure = replica["reason"] = spawn_failure(error, spec)
                return
        for replica in self.replicas.values():
            process = read_process(replica["pid"])
            replica["pid_started"] = process.start if process else ""
        self.enter("RUNNING")
        self.saved_at = 0.0  # save at once
        # Only now, since the replicas would inherit it: four files a replica are held open.
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        for number, spec in enumerate(self.request["replicas"]):
            try:
                self.logs[number] = CombinedLog(spec, self.mode)
            except OSError:
                continue  # readers take both streams then
            self.watch.add(spec["stdout"], number)
            self.watch.add(spec["stderr"], number)
            self.copy_at[number] = 0.0

    def spawn(self, spec: dict, replica: dict) -> None:
        """Start one replica in a session of its own.

        Raises:
            OSError: its command or folder cannot be used, or its log files cannot be made.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        out, err = (os.open(spec[name], flags, self.mode) for name in ("stdout", "stderr"))
        try:
            process = subprocess.Popen(
                spec["args"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=spec["cwd"],
                env={**os.environ, **spec["env"]},
                start_new_session=True,
            )
        finally:
            os.close(out)
            os.close(err)
        replica.update(pid=process.pid, started_at=time.time())
        self.processes.append(process)
        self.replicas[process.pid] = replica

    def sleep(self, now: float) -> None:
        """Sleep until there is something to do."""
        wait = (
            _COPY_SECONDS * 5 if self.ending_since else _TURN_SECONDS if self.queued or self.changed else _LOOK_SECONDS
        )
        if self.watch.file < 0 and self.logs:
            wait = min(wait, _COPY_SECONDS * 2)
        wait = min([wait, *(at - now for at in self.copy_at.values())])
        files = [self.woken] + ([self.watch.file] if self.watch.file >= 0 else [])
        ready = select.select(files, [], [], max(0.0, wait))[0]
        if self.woken in ready:
            os.read(self.woken, 1 << 12)
        elif ready:
            time.sleep(_COPY_SECONDS)

    def reap(self) -> None:
        """Take the exit codes of the replicas that ended, and of what was left to this process."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            replica = self.replicas.pop(pid, {})
            replica.update(exit_code=os.waitstatus_to_exitcode(status), finished_at=time.time())
            self.changed = self.changed or "pid" in replica

    def end_processes(self, everything: bool) -> bool:
        """End what is left: SIGTERM first, after the grace SIGKILL until it works; tell whether nothing is left.

        Args:
            everything: every descendant; else what the replicas, now ended, left behind (torchrun's workers).
        """
        if not everything and self.childless and _LINUX:
            return True
        known = self.state["replicas"] if self.request["adopt"] else ()
        roots = {os.getpid(), *(it["pid"] for it in known if is_running(it["pid"], it["pid_started"]))}
        left = job_processes(self.state["job_id"], roots if everything else set())
        now = time.monotonic()
        if left and not self.ending_since:
            self.ending_since = now
            if not everything:
                self.state["notes"].append(f"ended {len(left)} processes that its replicas had left behind")
        pids = {process.pid for process in left}
        groups = {process.group for process in left if process.parent not in pids} - self.told
        self.told |= groups
        for process in left:
            if now - self.ending_since >= self.request["grace"]:
                send_signal(process, signal.SIGKILL)
            elif process.group in groups:  # the rest hears of it from its parent, or when that has ended
                send_signal(process, signal.SIGTERM)
                send_signal(process, signal.SIGCONT)
        return not (left or self.replicas)

    def finish(self) -> None:
        """Write the final state, however long the disk is full."""
        replicas = self.state["replicas"]
        failed = self.failure or any(replica["exit_code"] for replica in replicas)
        self.state.update(finished_at=time.time(), waits_for=[])
        self.enter("CANCELLED" if self.state["cancel"] else "FAILED" if failed else "SUCCEEDED")
        roles: dict[str, list] = {}
        for spec, replica in zip(self.request["replicas"], replicas):
            mine = {"replica_id": replica["id"], "pid": replica["pid"], "exitcode": replica["exit_code"]}
            files = {name: spec[name] for name in ("stdout", "stderr", "error_file")}
            roles.setdefault(replica["role"], []).append({**mine, **files})
        what = {"app_id": self.state["app_id"], "log_dir": self.folder, "final_state": self.state["state"]}
        success = json.dumps({**what, "last_updated": time.time(), "roles": roles}, indent=2).encode()
        while os.path.isdir(self.folder):
            while any(log.copy(last=True) == 0.0 for log in self.logs.values()):
                pass
            try:
                replace_file(os.path.join(self.folder, "SUCCESS"), success)
                self.save(sync=True)
                break
            except OSError:
                time.sleep(_LOOK_SECONDS)
        remove(self.request["turn"])
        if os.path.exists(os.path.join(self.folder, "delete")):
            remove(self.folder)
            remove(self.request["record"])


def spawn_failure(error: Exception, spec: dict) -> str:
    """Say in words why a replica could not be started."""
    code, command = getattr(error, "errno", None), spec["args"][0]
    if getattr(error, "filename", None) == spec["cwd"]:
        return f"its working folder cannot be used: {spec['cwd']}: {os.strerror(code or errno.ENOENT)}"
    if code == errno.ENOENT and not os.path.exists(os.path.join(spec["cwd"] or "", command)):
        return f"no such command: {command}"
    words = {
        errno.ENOENT: "the program that its first line names is missing",
        errno.EACCES: "not an executable file",
        errno.ENOEXEC: "not a program: no #! line, or made for another kind of machine",
    }
    return f"cannot start {command}: {words.get(code or 0) or getattr(error, 'strerror', None) or error}"


def main() -> None:
    """Leave the launcher, take the request, answer it, run the app."""
    if os.fork():
        os._exit(0)  # the launcher waits for this one only, and no zombie of ours stays with it
    text = sys.stdin.buffer.read()
    if not text:
        return  # the launcher died
    supervisor = Supervisor(json.loads(text))
    try:
        supervisor.prepare()
        answer = {"pid": os.getpid()}
    except OSError as error:
        answer = {"error": f"{error.strerror}: {error.filename}"}
    os.write(1, json.dumps(answer).encode() + b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    if "error" in answer:
        return
    os.chdir("/")
    try:
        supervisor.run()
    except BaseException:
        with open(os.path.join(supervisor.folder, "supervisor.log"), "a") as file:
            traceback.print_exc(file=file)
        raise


if __name__ == "__main__":
    main()
