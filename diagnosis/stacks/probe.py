"""Reads the stacks of the ranks that run here: started where they run, by ``RunsCommands``.

    python3 -I -S -c SOURCE '{"recorder": true, "native": false}'

prints JSON, one object a line; `take.py` reads them. It needs nothing but Python 3.6: no package of ours is there. A
rank is asked in these ways, until one answers: torch's worker server on its unix socket; torch's debug server;
``faulthandler``, by a signal for which the rank says that it is meant so; py-spy, where it is installed.
"""

import base64
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib

MOST_BYTES = 32 << 20
MOST_PROCESSES = 2000
MOST_SOURCES = 40
AROUND = 4  # lines of the source before and after a frame's
AT_ONCE = 8
ASK_S, PYSPY_S, NATIVE_S, SIGNAL_S, DUMP_S, DEBUG_PORT = 4.0, 10.0, 60.0, 2.0, 3.0, 25999
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHX_TUI_INSIGHT", "TORCH_WORKER_SERVER_SOCKET",
         "TORCHX_TUI_STACK_SIGNAL", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
         "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "SLURM_JOB_ID", "PATH")  # fmt: skip
LOCK = threading.Lock()


def say(**fields):
    """Print one object; threads take turns."""
    with LOCK:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def read(path, limit=1 << 20):
    """Return the beginning of a regular file of /proc or elsewhere, empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return b""
    parts, size = [], 0
    try:
        while stat.S_ISREG(os.fstat(descriptor).st_mode) and size < limit:
            part = os.read(descriptor, min(1 << 20, limit - size))
            if not part:
                break
            parts.append(part)
            size += len(part)
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts)


# ---- Processes


class Process:
    """One process of this machine, as /proc tells it."""

    def __init__(self, pid):
        text = read("/proc/%d/stat" % pid)
        name, fields = text[text.index(b"(") + 1 : text.rindex(b")")], text[text.rindex(b")") + 2 :].split()
        self.pid, self.parent, self.state = pid, int(fields[1]), fields[0].decode()
        self.started_ticks = int(fields[19])
        self.name = name.decode("utf-8", "replace")
        self.cpu = int(fields[11]) + int(fields[12])
        self.env = {}
        self.children = []

    def look(self):
        """Read what is known of those that matter only."""
        for item in read("/proc/%d/environ" % self.pid, 4 << 20).split(b"\0"):
            key, _, value = item.partition(b"=")
            key = key.decode("utf-8", "replace")
            if key in NAMES:
                self.env[key] = value.decode("utf-8", "surrogateescape")
        try:
            self.program = os.path.basename(os.readlink("/proc/%d/exe" % self.pid))
        except OSError:
            self.program = ""
        arguments = read("/proc/%d/cmdline" % self.pid, 1 << 16).split(b"\0")
        self.command = [item.decode("utf-8", "replace") for item in arguments if item][:40]
        self.is_python = (
            re.match(r"python|pypy", self.program or os.path.basename((self.command or [""])[0])) is not None
        )

    @property
    def place(self):
        """Its rank, and its rank on this machine."""
        return self.env.get("RANK"), self.env.get("LOCAL_RANK")

    def waits_for(self):
        """Return the kernel's function that the process waits in, where it tells."""
        text = read("/proc/%d/wchan" % self.pid, 200).decode("ascii", "replace").strip()
        return "" if text == "0" else text

    def status(self, field):
        """Return a line of /proc/PID/status, see proc_pid_status(5)."""
        for line in read("/proc/%d/status" % self.pid, 1 << 16).decode("ascii", "replace").splitlines():
            if line.startswith(field + ":"):
                return line.partition(":")[2].strip()
        return ""


def all_processes():
    """Return every process of this pid namespace, each with its children."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                table[int(name)] = Process(int(name))
            except (ValueError, IndexError):  # it has just ended
                pass
    for process in table.values():
        if process.parent in table:
            table[process.parent].children.append(process)
    return table


def below(process):
    """Return a process and all below it."""
    found, left = [], [process]
    while left and len(found) < MOST_PROCESSES:
        item = left.pop(0)
        found.append(item)
        left += item.children
    return found


def job_processes(table):
    """Return the processes of the replica: those below its first one, of its Slurm job, or of this container."""
    root = os.environ.get("TORCHX_TUI_REPLICA_PID", "")
    mine, pid = set(), os.getpid()
    while pid in table:
        mine.add(pid)
        pid = table[pid].parent
    if root.isdigit():
        found = below(table[int(root)]) if int(root) in table else []
    else:
        found = [item for pid, item in sorted(table.items()) if pid not in mine or pid == 1]
    found = [item for item in found if item.pid != os.getpid()][:MOST_PROCESSES]
    for item in found:
        item.look()
    job = os.environ.get("SLURM_JOB_ID")
    if job and not root.isdigit():
        found = [item for item in found if item.env.get("SLURM_JOB_ID") == job]
    return found


def find_ranks(processes):
    """Return the main process of each rank: forks share its environment, and launchers may have one of their own."""
    ranks = [item for item in processes if item.is_python and item.env.get("RANK", "").isdigit()]
    inside = {item.pid for item in ranks}
    launchers = {item.pid for item in ranks if any(c.place != item.place and c.pid in inside for c in below(item)[1:])}
    chosen = []
    for item in ranks:
        above = [other for other in ranks if item.pid != other.pid and item in below(other)]
        if item.pid not in launchers and not any(other.pid not in launchers for other in above):
            chosen.append(item)
    if chosen:
        return chosen
    # A job without ranks is one process, or several that know nothing of each other.
    pythons = [item for item in processes if item.is_python]
    pids = {item.pid for item in pythons}
    return [item for item in pythons if item.parent not in pids]


# ---- The ways


class NotRead(Exception):
    """A way gave no stack; the message says why."""


def open_socket(process):
    """Return the connected socket of a rank's worker server."""
    if process.state in "Tt":
        raise NotRead("it is stopped by a signal")
    folder, other = process.env.get("TORCHX_TUI_INSIGHT", ""), process.env.get("TORCH_WORKER_SERVER_SOCKET", "")
    name = "%s.%d.sock" % (process.env.get("RANK"), process.pid)
    paths = [other] if other else []
    descriptor = -1
    if folder not in ("", "0"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            paths.insert(0, "/proc/self/fd/%d/%s" % (descriptor, name))
        except OSError:
            pass
    if not paths:
        raise NotRead("the job was not launched with it")
    try:
        for path in paths:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(ASK_S)
            try:
                connection.connect(path)
                return connection
            except OSError:
                connection.close()
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    raise NotRead("no socket: torch.distributed is not imported there, or this torch has no worker server")


def ask(connection, request):
    """Send an HTTP request and return the body of the answer."""
    deadline = time.time() + ASK_S
    data = b""
    try:
        connection.sendall(
            request.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        while len(data) < MOST_BYTES:
            if time.time() > deadline:
                raise NotRead("no answer within %d s" % ASK_S)
            part = connection.recv(1 << 18)
            if not part:
                break
            data += part
    except OSError as error:
        raise NotRead("no answer: %s" % error)
    finally:
        connection.close()
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head[:20]:
        raise NotRead("it answered %s" % head[:40].decode("ascii", "replace"))
    if b"transfer-encoding: chunked" in head.lower():
        parts = []
        while body:
            size, _, body = body.partition(b"\r\n")
            parts.append(body[: int(size or b"0", 16)])
            body = body[int(size or b"0", 16) + 2 :]
        body = b"".join(parts)
    return body


def by_worker_server(process):
    """Ask the server that our sitecustomize, or the job itself, has started: it answers whatever the rank waits for."""
    text = ask(open_socket(process), "POST /handler/dump_traceback").decode("utf-8", "replace")
    if "File " not in text:
        raise NotRead("the worker server knows no frame")
    return {"text": text}


def by_debug_server(process):
    """Ask the front end that `torch.distributed.debug.start_debug_server` starts beside rank 0."""
    listening = False
    for path in ("/proc/%d/net/tcp" % process.pid, "/proc/%d/net/tcp6" % process.pid):
        for line in read(path, 4 << 20).decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            listening = listening or (fields[3] == "0A" and fields[1].endswith(":%04X" % DEBUG_PORT))
    if not listening:
        raise NotRead("the job has none on port %d" % DEBUG_PORT)
    connection = socket.create_connection(("localhost", DEBUG_PORT), ASK_S)
    page = ask(connection, "GET /stacks").decode("utf-8", "replace")
    import html

    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    parts = re.split(r"Rank (\d+)\b[^\n]*", text)
    for number, part in zip(parts[1::2], parts[2::2]):
        if number == process.env.get("RANK") and "File " in part:
            return {"text": part}
    raise NotRead("it has no stack of this rank")


def by_signal(process):
    """Ask faulthandler, where the job says by a variable which signal it has registered for that."""
    name = process.env.get("TORCHX_TUI_STACK_SIGNAL", "")
    if not name:
        raise NotRead("TORCHX_TUI_STACK_SIGNAL names no signal for it")
    number = getattr(signal, "SIG" + name.upper().replace("SIG", ""), None)
    if number is None or not int(process.status("SigCgt") or "0", 16) >> (number - 1) & 1:
        raise NotRead("no handler for %s: the signal would end the rank" % name)
    path = "/proc/%d/fd/2" % process.pid
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise NotRead("its stderr cannot be read: %s" % error)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise NotRead("its stderr is not a file")
        os.kill(process.pid, number)
        text, deadline = b"", time.time() + SIGNAL_S
        while time.time() < deadline:
            time.sleep(0.05)
            fresh = os.pread(descriptor, 1 << 20, before.st_size)
            if fresh and fresh == text:
                break
            text = fresh
    finally:
        os.close(descriptor)
    if b"most recent call first" not in text:
        raise NotRead("nothing came on its stderr within %d s" % SIGNAL_S)
    return {"text": text.decode("utf-8", "replace")}


def by_pyspy(process, native=False):
    """Read the process's memory from outside; it is stopped meanwhile, for some 20 ms."""
    folders = [os.environ.get("PATH", os.defpath), process.env.get("PATH", "")]
    if process.command and process.command[0].startswith("/"):
        folders.append(os.path.dirname(process.command[0]))
    program = shutil.which("py-spy", path=os.pathsep.join(folders))
    if program is None:
        is_outside = os.environ.get("TORCHX_TUI_REPLICA_PID") or os.environ.get("SLURM_JOB_ID")
        raise NotRead("not installed here: pip install py-spy" if is_outside else "not in the image, see docs/hangs.md")
    # A process that is stopped, or that the kernel holds, could not be stopped for the reading.
    more = (["--native"] if native else []) + (["--nonblocking"] if process.state in "TtD" and not native else [])
    command = [program, "dump", "--json", "--pid", str(process.pid)] + more
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=NATIVE_S if native else PYSPY_S)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotRead("py-spy did not return within %d s" % PYSPY_S)
    except OSError as error:
        raise NotRead("py-spy cannot be run: %s" % error)
    if ended.returncode:
        raise NotRead(refused(process, ended.stderr.decode("utf-8", "replace")))
    try:
        return {"threads": json.loads(ended.stdout.decode("utf-8", "replace"))}
    except ValueError:
        raise NotRead("py-spy printed no stacks")


def refused(process, text):
    """Return why py-spy may not read a process, and what would help."""
    line = (text.strip().splitlines() or ["it failed"])[0][:200]
    if not re.search(r"[Pp]ermission|not permitted|os error (1|13)\b", text):
        return line
    owner = (process.status("Uid").split() or ["?"])[0]
    scope = read("/proc/sys/kernel/yama/ptrace_scope", 10).strip()
    has_right = int(Process(os.getpid()).status("CapEff") or "0", 16) >> 19 & 1
    if owner != str(os.geteuid()) and not has_right:
        return "not allowed: it is a process of user %s: ask as that user, or as root with CAP_SYS_PTRACE" % owner
    if scope not in (b"", b"0") and not has_right:
        return ("not allowed: ptrace_scope is %s: launch the job here, so that the worker server answers, "
                "or ask root for sysctl kernel.yama.ptrace_scope=0" % scope.decode())  # fmt: skip
    return "not allowed (%s): give CAP_SYS_PTRACE to the container, or to who asks" % line


def read_stack(process, ways):
    """Return the result of the first way that gave a stack, and why the ways before it gave none."""
    tried = []
    for name, way in ways:
        try:
            return dict(way(process), way=name, tried=tried)
        except NotRead as error:
            tried.append([name, str(error)])
        except Exception as error:
            tried.append([name, "%s: %s" % (type(error).__name__, error)])
    return {"way": "", "tried": tried}


# ---- The flight recorder


def read_recorder(process):
    """Return the recorder of a rank, and how it was got: asked live, or a file that is younger than the process."""
    try:
        return ask(open_socket(process), "POST /handler/fr_trace_json"), "worker server"
    except NotRead:
        pass
    env, rank = process.env, process.env.get("RANK", "")
    prefix = env.get("TORCH_FR_DUMP_TEMP_FILE") or env.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
    pipe = env.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    if not prefix:
        raise NotRead("no worker server, and no TORCH_FR_DUMP_TEMP_FILE in its environment")
    since, way = start_of(process), "file"
    if pipe and ask_pipe("%s%s.pipe" % (pipe, rank)):
        since, way = time.time() - 1, "pipe"
    deadline = time.time() + (DUMP_S if way == "pipe" else 0)
    while True:
        try:
            if os.stat(prefix + rank).st_mtime >= since:
                return read(prefix + rank, MOST_BYTES), way
        except OSError:
            pass
        if time.time() >= deadline:
            raise NotRead("no worker server, and no dump %s%s of this run" % (prefix, rank))
        time.sleep(0.1)


def start_of(process):
    """Return when a process began, in seconds since the epoch, at the earliest."""
    for line in read("/proc/stat", 4 << 20).decode("ascii", "replace").splitlines():
        if line.startswith("btime"):
            return int(line.split()[1]) + process.started_ticks / os.sysconf("SC_CLK_TCK") - 1
    return 0.0


def ask_pipe(path):
    """Ask NCCL's watchdog for a dump; tell whether it listens."""
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return False
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        os.write(descriptor, b"1\n")
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


# ---- Sources


def frames_of(found):
    """Yield file and line of every frame."""
    for thread in found.get("threads") or []:
        for frame in thread.get("frames") or []:
            yield str(frame.get("filename", "")), frame.get("line", 0)
    for path, line in re.findall(r'File "([^"\n]+)", line (\d+)', found.get("text", "")):
        yield path, int(line)


def say_sources(wanted):
    """Print the lines around the user's own frames: the file is read here, where the rank has it."""
    for (path, folder), numbers in list(wanted.items())[:MOST_SOURCES]:
        lines = read(os.path.join(folder, path), 4 << 20).decode("utf-8", "replace").splitlines()
        kept = {}
        for number in sorted(numbers)[:20]:
            for at in range(max(1, number - AROUND), number + AROUND + 1):
                if at <= len(lines):
                    kept[at] = lines[at - 1][:300]
        if kept:
            say(kind="source", file=path, lines=kept)


def main():
    """Read what the command line asks for, print what is found."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    processes = job_processes(all_processes())
    ranks = find_ranks(processes)
    mains = {item.pid for item in ranks}
    native = bool(options.get("native"))
    pyspy = [("py-spy", lambda process: by_pyspy(process, native))] if options.get("stop", True) else []
    ways = [("worker server", by_worker_server), ("debug server", by_debug_server), ("faulthandler", by_signal)] + pyspy
    wanted = {}

    def report(item, rank_of, is_main):
        found = read_stack(item, pyspy if native or not is_main else ways)
        say(kind="process", rank=rank_of.env.get("RANK"), world=rank_of.env.get("WORLD_SIZE"), pid=item.pid,
            parent=item.parent, is_main=is_main, name=item.name, state=item.state, cpu=item.cpu,
            waits_for=item.waits_for(), host=os.uname()[1], **found)  # fmt: skip
        try:
            folder = os.readlink("/proc/%d/cwd" % item.pid)
        except OSError:
            folder = "/"
        for path, line in frames_of(found):
            if not re.search(r"/(site|dist)-packages/|/lib/python|^<", path) and isinstance(line, int):
                with LOCK:
                    wanted.setdefault((path, folder), set()).add(line)

    def report_recorder(item):
        try:
            data, way = read_recorder(item)
            packed = base64.b64encode(zlib.compress(data)).decode("ascii")
            say(kind="recorder", rank=item.env.get("RANK"), way=way, at=time.time(), data=packed)
        except NotRead as error:
            say(kind="recorder", rank=item.env.get("RANK"), way="", reason=str(error))

    work = [(report, (item, item, True)) for item in ranks]
    if options.get("recorder", True) and not native:
        work += [(report_recorder, (item,)) for item in ranks if "RANK" in item.env]
    for rank in ranks:
        work += [(report, (c, rank, False)) for c in below(rank)[1:] if c.pid not in mains and hasattr(c, "program")]

    def turn():
        while True:
            with LOCK:
                if not work:
                    return
                call, arguments = work.pop(0)
            call(*arguments)

    threads = [threading.Thread(target=turn) for _ in range(AT_ONCE)]
    for step in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            step(thread)
    say(kind="end", host=os.uname()[1], processes=len(processes), ranks=len(ranks))
    say_sources(wanted)


if __name__ == "__main__":
    main()
