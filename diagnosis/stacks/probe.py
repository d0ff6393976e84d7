"""Reads the stacks and flight recorders of the ranks on this machine, where they run (see ``RunsCommands``).

    python3 -I -S -c SOURCE '{"stop": true, "native": false}'

prints JSON objects, one per line, which `protocol.py` parses. It needs Python 3.6 and nothing else. It reads each rank
through PyTorch's worker server on its unix socket, or else through py-spy.
"""

import base64
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

MAX_BYTES = 32 << 20
MAX_PROCESSES = 2000
MAX_SOURCES = 40
SOURCE_LINES = 4  # before and after the line of a frame
THREADS = 8
ANSWER_S, PYSPY_S, NATIVE_S, DUMP_S = 4.0, 10.0, 60.0, 3.0
LOCK = threading.Lock()


def put(**fields):
    """Print one object."""
    with LOCK:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def read(path, limit=1 << 20):
    """Return the beginning of a regular file; empty if it cannot be read."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except (OSError, ValueError):
        return b""


# ---- Processes


class Process:
    """A process of this machine, from /proc."""

    def __init__(self, pid):
        text = read("/proc/%d/stat" % pid)
        name, fields = text[text.index(b"(") + 1 : text.rindex(b")")], text[text.rindex(b")") + 2 :].split()
        self.pid, self.parent, self.state = pid, int(fields[1]), fields[0].decode()
        self.started_ticks = int(fields[19])
        self.name = name.decode("utf-8", "replace")
        self.cpu = int(fields[11]) + int(fields[12])
        self.env = {}
        self.children = []

    def read_details(self):
        """Read the environment, the program and the command line."""
        text = read("/proc/%d/environ" % self.pid, 4 << 20).decode("utf-8", "surrogateescape")
        self.env = {key: value for key, _, value in (item.partition("=") for item in text.split("\0"))}
        try:
            self.program = os.path.basename(os.readlink("/proc/%d/exe" % self.pid))
        except OSError:
            self.program = ""
        arguments = read("/proc/%d/cmdline" % self.pid, 1 << 16).split(b"\0")
        self.command = [item.decode("utf-8", "replace") for item in arguments if item][:40]
        self.is_python = (
            re.match(r"python|pypy", self.program or os.path.basename((self.command or [""])[0])) is not None
        )

    def waits_for(self):
        """Return the kernel function in which the process waits; empty if unknown."""
        text = read("/proc/%d/wchan" % self.pid, 200).decode("ascii", "replace").strip()
        return "" if text == "0" else text

    def status(self, field):
        """Return a number of /proc/PID/status, see proc_pid_status(5); 0 if it is not there."""
        found = re.search(r"^%s:\s*(\w+)" % field, read("/proc/%d/status" % self.pid).decode("ascii", "replace"), re.M)
        return found.group(1) if found else "0"


def all_processes():
    """Return all processes of this pid namespace by pid, each with its children."""
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
    """Return a process and its descendants."""
    found = [process]
    for item in found:
        if len(found) < MAX_PROCESSES:
            found += item.children
    return found[:MAX_PROCESSES]


def job_processes(table):
    """Return the processes of the replica: below its first process, of its Slurm job, or of this container."""
    root = os.environ.get("TORCHX_TUI_REPLICA_PID", "")
    mine, pid = set(), os.getpid()
    while pid in table:
        mine.add(pid)
        pid = table[pid].parent
    if root.isdigit():
        found = below(table[int(root)]) if int(root) in table else []
    else:
        found = [item for pid, item in sorted(table.items()) if pid not in mine or pid == 1]
    found = [item for item in found if item.pid != os.getpid()][:MAX_PROCESSES]
    for item in found:
        item.read_details()
    job = os.environ.get("SLURM_JOB_ID")
    if job and not root.isdigit():
        found = [item for item in found if item.env.get("SLURM_JOB_ID") == job]
    return found


def find_ranks(processes):
    """Return the main process of each rank: forks share its environment, and launchers may have a rank, too."""
    pythons = [item for item in processes if item.is_python]
    ranks = {item: (item.env["RANK"], item.env.get("LOCAL_RANK"))
             for item in pythons if item.env.get("RANK", "").isdigit()}  # fmt: skip
    workers = [item for item in ranks if all(ranks.get(child, ranks[item]) == ranks[item] for child in below(item))]
    forks = {child for item in workers for child in below(item)[1:]}
    # A job without ranks: one process, or several independent ones.
    pids = {item.pid for item in pythons}
    return [item for item in workers if item not in forks] or [item for item in pythons if item.parent not in pids]


# ---- The ways


class NotRead(Exception):
    """A way failed; the message says why."""


def open_socket(process):
    """Return the connected socket of a rank's worker server."""
    if process.state in "Tt":
        raise NotRead("it is stopped by a signal")
    folder = process.env.get("TORCHX_TUI_INSIGHT", "")
    if folder in ("", "0"):
        raise NotRead("the job was not launched with it")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_S)
    try:
        # The path of a socket has at most 107 bytes; one through a descriptor is short.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            connection.connect("/proc/self/fd/%d/%s.%d.sock" % (descriptor, process.env.get("RANK"), process.pid))
        finally:
            os.close(descriptor)
    except OSError:
        connection.close()
        raise NotRead("no socket: torch.distributed is not imported there, or this torch has no worker server")
    return connection


def ask(connection, request):
    """Send an HTTP request and return the body of the response."""
    deadline = time.time() + ANSWER_S
    data = b""
    try:
        connection.sendall(
            request.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        while len(data) < MAX_BYTES:
            if time.time() > deadline:
                raise NotRead("no answer within %d s" % ANSWER_S)
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
    return body


def by_worker_server(process):
    """Ask the server that our sitecustomize or the job has started: it answers even while the rank waits."""
    text = ask(open_socket(process), "POST /handler/dump_traceback").decode("utf-8", "replace")
    if "File " not in text:
        raise NotRead("the worker server returned no frame")
    return {"text": text}


def by_pyspy(process, native=False):
    """Run py-spy, which stops the process for about 20 ms."""
    folders = [os.environ.get("PATH", os.defpath), process.env.get("PATH", "")]
    if process.command and process.command[0].startswith("/"):
        folders.append(os.path.dirname(process.command[0]))
    program = shutil.which("py-spy", path=os.pathsep.join(folders))
    if program is None:
        is_outside = os.environ.get("TORCHX_TUI_REPLICA_PID") or os.environ.get("SLURM_JOB_ID")
        raise NotRead("not installed here: pip install py-spy" if is_outside else "not in the image, see docs/hangs.md")
    # py-spy cannot stop a process that is stopped already, or that the kernel holds.
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
    """Return why py-spy could not read a process, and what would help."""
    line = (text.strip().splitlines() or ["it failed"])[0][:200]
    if not re.search(r"[Pp]ermission|not permitted|os error (1|13)\b", text):
        return line
    owner = process.status("Uid")
    scope = read("/proc/sys/kernel/yama/ptrace_scope", 10).strip()
    has_right = int(Process(os.getpid()).status("CapEff"), 16) >> 19 & 1
    if owner != str(os.geteuid()) and not has_right:
        return "not allowed: the process belongs to user %s: run as that user, or as root with CAP_SYS_PTRACE" % owner
    if scope not in (b"", b"0") and not has_right:
        return ("not allowed: ptrace_scope is %s: launch the job here, so that the worker server answers, "
                "or ask root for sysctl kernel.yama.ptrace_scope=0" % scope.decode())  # fmt: skip
    return "not allowed (%s): add CAP_SYS_PTRACE to the container or to this user" % line


def read_stack(process, ways):
    """Return the result of the first way that succeeds, and why the ways before it failed."""
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
    """Return a rank's flight recorder and how it was read: live, or from a file that is younger than the process."""
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
                return read(prefix + rank, MAX_BYTES), way
        except OSError:
            pass
        if time.time() >= deadline:
            raise NotRead("no worker server, and no dump %s%s of this run" % (prefix, rank))
        time.sleep(0.1)


def start_of(process):
    """Return the earliest possible start of a process, in seconds since the epoch."""
    booted = re.search(rb"^btime (\d+)", read("/proc/stat", 4 << 20), re.M)
    return int(booted.group(1)) + process.started_ticks / os.sysconf("SC_CLK_TCK") - 1 if booted else 0.0


def ask_pipe(path):
    """Ask NCCL's watchdog for a dump; return whether it listens."""
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            with open(path, "wb", 0, opener=lambda name, _: os.open(name, os.O_WRONLY | os.O_NONBLOCK)) as pipe:
                return pipe.write(b"1\n") is not None
    except OSError:
        pass
    return False


# ---- Sources


def frames_of(found):
    """Yield the file and the line of each frame."""
    for thread in found.get("threads") or []:
        for frame in thread.get("frames") or []:
            yield str(frame.get("filename", "")), frame.get("line", 0)
    for path, line in re.findall(r'File "([^"\n]+)", line (\d+)', found.get("text", "")):
        yield path, int(line)


def put_sources(wanted):
    """Print the source lines around the user's frames."""
    for (path, folder), numbers in list(wanted.items())[:MAX_SOURCES]:
        lines = [""] + read(os.path.join(folder, path), 4 << 20).decode("utf-8", "replace").splitlines()
        kept = {}
        for number in sorted(numbers)[:20]:
            for at in range(max(1, number - SOURCE_LINES), min(number + SOURCE_LINES + 1, len(lines))):
                kept[at] = lines[at][:300]
        if kept:
            put(kind="source", file=path, lines=kept)


def main():
    """Read and print what the command line asks for."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    processes = job_processes(all_processes())
    ranks = find_ranks(processes)
    mains = {item.pid for item in ranks}
    native = bool(options.get("native"))
    pyspy = [("py-spy", lambda process: by_pyspy(process, native))] if options.get("stop", True) else []
    ways = [("worker server", by_worker_server)] + pyspy
    wanted = {}

    def report(item, rank_of, is_main):
        found = read_stack(item, pyspy if native or not is_main else ways)
        put(kind="process", rank=rank_of.env.get("RANK"), world=rank_of.env.get("WORLD_SIZE"), pid=item.pid,
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
            put(kind="recorder", rank=item.env.get("RANK"), way=way, at=time.time(), data=packed)
        except NotRead as error:
            put(kind="recorder", rank=item.env.get("RANK"), way="", reason=str(error))

    children = [(c, rank) for rank in ranks for c in below(rank)[1:] if c.pid not in mains and hasattr(c, "program")]
    with ThreadPoolExecutor(THREADS) as pool:
        work = [pool.submit(report, item, item, True) for item in ranks]
        if not native:
            work += [pool.submit(report_recorder, item) for item in ranks if "RANK" in item.env]
        work += [pool.submit(report, c, rank, False) for c, rank in children]
    for each in work:
        each.result()
    put(kind="end", host=os.uname()[1], processes=len(processes), ranks=len(ranks))
    put_sources(wanted)


if __name__ == "__main__":
    main()
