"""The rooms, as globs of their files and of the tests that guard them; and changes that change nothing."""

from __future__ import annotations

ROOMS: dict[str, tuple[list[str], list[str]]] = {
    "specs": (
        ["specs/*.py"],
        [
            *("tests/specs/test_*.py", "tests/components/test_values.py", "tests/components/test_types.py"),
            *(f"tests/interop/test_oracle_{name}.py" for name in ("macros", "mounts_and_handles", "runopts", "status")),
            *(f"tests/interop/test_{name}.py" for name in ("oracle_named_resources", "documented_names", "names_page")),
        ],
    ),
    "components": (
        ["components/*.py", "components/programs/*.py"],
        [
            *("tests/components/test_*.py", "tests/backend/test_scripts.py", "tests/tui/test_every_component.py"),
            "tests/guest/test_bad_components.py",
            *(f"tests/interop/test_oracle_{name}.py" for name in ("builtins", "component_arguments", "linter")),
            "tests/interop/test_oracle_structured_opts.py",
        ],
    ),
    "logs": (["logs/*/*.py"], ["tests/logs/test_*.py", "tests/tui/test_log_*.py", "tests/tui/test_output_filter.py"]),
    "local": (
        ["backends/local/*.py", "backends/local/torchx/*.py"],
        ["tests/backend/local/test_*.py", "tests/interop/test_oracle_local.py", "tests/interop/test_local_jobs.py"],
    ),
    "docker": (
        ["backends/docker/*.py", "backends/docker_engine/*.py"],
        [
            "tests/backend/docker/test_*.py",
            "tests/interop/test_docker_*.py",
            "tests/interop/test_oracle_requests.py",
            "tests/backend/test_docker_workspace.py",
        ],
    ),
    "kubernetes": (
        ["backends/kubernetes/*.py", "backends/kubernetes/*/*.py"],
        ["tests/backend/kubernetes/test_*.py", "tests/interop/test_kubernetes_*.py"],
    ),
    "slurm": (["backends/slurm/*.py"], ["tests/backend/slurm/test_*.py", "tests/tui/slurm/test_*.py"]),
    "runner": (
        ["backends/*.py", "backends/history/*.py", "backends/shared/*.py", "backends/workspace/*.py"],
        [
            *("tests/backend/test_*.py", "tests/backend/plugin/test_*.py", "tests/cli/test_run.py"),
            # What every backend shares is also tested with what one of them makes of it; these need no engine.
            *(f"tests/backend/docker/test_{name}.py" for name in ("states", "log_messages", "app_def", "request")),
            *(f"tests/backend/kubernetes/test_{name}.py" for name in ("causes", "late_answers", "names", "preflight")),
            *(f"tests/backend/local/test_{name}.py" for name in ("logs", "usage", "launch", "torchx_ended")),
            *("tests/interop/test_oracle_torchxconfig.py", "tests/interop/test_oracle_mounts_and_handles.py"),
            *("tests/interop/test_documented_names.py", "tests/interop/test_names_page.py"),
        ],
    ),
    "diagnosis": (["diagnosis/metrics/*.py", "diagnosis/progress/*.py"], ["tests/diagnosis/*/test_*.py"]),
    "launch": (
        ["tui/launch/*.py"],
        [
            *("tests/tui/test_launch*.py", "tests/tui/test_form_model.py", "tests/tui/test_field_items.py"),
            *("tests/tui/test_choice_field.py", "tests/tui/test_every_component.py", "tests/tui/test_*sweep.py"),
            *("tests/tui/test_picker.py", "tests/tui/test_bad_input.py", "tests/tui/slurm/test_script.py"),
            *("tests/tui/test_keymap.py", "tests/tui/test_relaunch.py"),
            *("tests/snapshots/test_launch_screens.py", "tests/snapshots/test_picker_screens.py"),
        ],
    ),
    "jobs": (
        ["tui/jobs/*.py", "tui/job/*.py", "tui/watch/*.py"],
        [
            *("tests/tui/test_job*.py", "tests/tui/test_row_order.py", "tests/tui/test_poller.py"),
            *("tests/tui/test_history.py", "tests/tui/test_table_choices.py", "tests/tui/test_relaunch.py"),
            *("tests/tui/test_stalled_jobs.py", "tests/tui/test_usage.py", "tests/tui/test_command_palette.py"),
            "tests/tui/test_keymap.py",
            *("tests/tui/slurm/test_*.py", "tests/tui/test_metrics_screen.py", "tests/tui/test_stacks_screen.py"),
            *(f"tests/snapshots/test_{name}screens.py" for name in ("", "relaunch_", "slurm_", "metrics_", "stacks_")),
        ],
    ),
    "cli": (
        ["cli/*.py"],
        [
            *("tests/cli/test_*.py", "tests/notify/test_away.py"),
            *("tests/e2e/test_pages.py", "tests/e2e/test_broken_config.py"),
        ],
    ),
}

# By file and statements, as a run prints them. Only what no program that uses the package could tell from the original.
SAME = {
    "logs/text/sanitize.py: if match.start() > position:  ->  if match.start() >= position:": (
        "an empty text is written: nothing"
    ),
    "logs/pattern/engine.py: f._compiled.finditer(text, timeout=MARK_LIMIT_S, concurrent=True):  ->  "
    "f._compiled.finditer(text, timeout=MARK_LIMIT_S, concurrent=False):": "only other threads run less often",
    r"logs/text/shown.py: _CSI = re.compile(b'\\x1b\\[(?:[0-?]*[ -/]*[@-JL-~]|0?K)')  ->  _CSI = re.compile(b'')": (
        "the slow way shows the same"
    ),
    "logs/spool/spools.py: shlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}\"  ->  "
    "shlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:17]}\"": "a longer name is as good",
    "components/model.py: kind = _CONTAINERS.get(container or '')  ->  kind = _CONTAINERS.get(container or 'x')": (
        "neither is a container"
    ),
    "components/build.py: _CONVERTED_FIELDS = ('retry_policy', 'resource', 'mounts', 'workspace', 'overrides')  ->  _CONVERTED_FIELDS = ('', 'resource', 'mounts', 'workspace', 'overrides')": (
        "its value is set again at once"
    ),
    "tui/watch/poller.py: same = known is not None and known[1] is record and (known[0] is app or known[0] == app)  ->  "
    "same = known is not None and known[1] is record and (known[1] is app or known[0] == app)": "an app equals itself",
    "tui/watch/progress.py: except OSError:  ->  except OSError: raise": "whatever is raised there is passed over",
    "tui/jobs/table.py: return self._order.handles(index, 1)[0]  ->  return self._order.handles(index, 2)[0]": (
        "the first of two is the same"
    ),
    "tui/jobs/card.py: self._job_name = ''  ->  pass": "the card is drawn, and fits its title, only once it has a job",
    "tui/jobs/table.py: if number < len(cells) - 1:  ->  if number <= len(cells) - 1:": (
        "a row is filled with blanks and cut at its width"
    ),
    "logs/view/scanner.py: self._dense_left -= 1  ->  self._dense_left -= 2": "both ways find the same lines",
    "logs/source/chunks.py: while len(queue) > 1 and queue[1].start <= size:  ->  while len(queue) > 1 and queue[1].start < size:": (
        "one more that has ended is passed over by the next call"
    ),
    "logs/source/chunks.py: while len(queue) > 1 and queue[1].start <= size:  ->  while len(queue) > 2 and queue[1].start <= size:": (
        "one more that has ended is passed over by each call"
    ),
    "logs/spool/spool_file.py: while data and len(data) < size and (more := os.pread(descriptor, size - len(data), st  ->  while data and len(data) <= size and (more := os.pread(descriptor, size - len(data), st": (
        "of no bytes none are read"
    ),
    "logs/source/log_file.py: while data and len(data) < size and (more := os.pread(descriptor, size - len(data), st  ->  while data and len(data) <= size and (more := os.pread(descriptor, size - len(data), st": (
        "of no bytes none are read"
    ),
    "logs/spool/spool_file.py: self.is_whole = True  ->  self.is_whole = False": "an empty segment is not full",
    "backends/local/scheduler.py: asked: dict[str, Any] = {'by': user_name(), 'at': 0.0}  ->  asked: dict[str, Any] = {'by': user_name(), '': 0.0}": (
        "no time is told either way"
    ),
    "backends/local/torchx/live.py: except (OSError, ValueError):  ->  except (OSError,):": "nothing there raises it",
    "cli/output.py: torchx-tui: {mask_text('', text)}\"), file=sys.stderr, flush=True)  ->  torchx-tui: {mask_text('', text)}\"), file=sys.stderr, flush=False)": (
        "Python writes each line of it at once"
    ),
    "cli/main.py: return [word]  ->  return None": "all commands are loaded: it takes longer alone",
    "cli/main.py: return []  ->  return None": "all commands are loaded: it takes longer alone",
    "cli/main.py: _LOG_HANDLER = 'torchx-tui.log'  ->  _LOG_HANDLER = ''": "a name of ours, as good as another",
    "logs/spool/spools.py: eft = [entry for entry in left if entry.spool.ended or now >= entry.wanted_until]  ->  eft = [entry for entry in left if entry.spool.ended or now > entry.wanted_until]": (
        "a clock is never at one instant exactly"
    ),
    "logs/view/scanner.py: if self._exact or engine.matches(shown[start:] if end < 0 else shown[start:end]):  ->  if self._exact or engine.matches(shown[start:] if end <= 0 else shown[start:end]):": (
        "no text is found before a line feed at 0"
    ),
    "logs/view/scanner.py: if self._exact or engine.matches(shown[start:] if end < 0 else shown[start:end]):  ->  if self._exact or engine.matches(shown[start:] if end < 1 else shown[start:end]):": (
        "no text is found before a line feed at 0"
    ),
    r"logs/text/shown.py: _SGR = re.compile(b'\\x1b\\[[0-9;:]*m')  ->  _SGR = re.compile(b'')": "the slow way shows the same",
    "logs/spool/reader.py: self._trouble = ''  ->  pass": "it is set as the stream is begun",
    "logs/spool/reader.py: self._trouble = ''  ->  self._trouble = 'x'": "it is set as the stream is begun",
    "logs/spool/reader.py: self._notices_read = 0  ->  pass": "it is set as the stream is begun",
    "logs/spool/reader.py: self._notices_read = 0  ->  self._notices_read = 1": "it is set as the stream is begun",
    "backends/local/torchx/jobs.py: started_at = min((at for at in places.values() if at <= ended_at), default=ended_at)  ->  started_at = min((at for at in places.values() if at < ended_at), default=ended_at)": (
        "the default is as late"
    ),
    "logs/view/line_index.py: segment.key = SegmentKey(False, table.end - 1 if joined else table.add(segment))  ->  segment.key = SegmentKey(False, table.end - 2 if joined else table.add(segment))": (
        "only the last segment of a file grows, and that is never joined"
    ),
    "logs/view/match_index.py: rows += self._log.index.rows(newer, first + _FIRST_BATCH_ROWS, _MAX_BATCH_ROWS)  ->  pass": (
        "the next step takes them"
    ),
    r"logs/source/file_source.py: head = data.find(b'\n', 0, -1) + 1  ->  head = data.find(b'\n', 1, -1) + 1": (
        "a line is in the segment before"
    ),
    "logs/view/match_index.py: return [0] * len(run) if len(data) <= BLOCK and self._scanner.count(block) == 0 else None  ->  return None": (
        "each is counted by itself"
    ),
    "logs/view/match_index.py: if end < older.end:  ->  if end <= older.end:": "nothing is left out",
    "logs/spool/spool_file.py: self._last_start = 0  ->  pass": "it is set with the first record",
    "logs/spool/spool_file.py: self._last_start = 0  ->  self._last_start = 1": "it is set with the first record",
    "specs/calls.py: if waited >= self._slow_seconds and (not reported):  ->  if waited > self._slow_seconds and (not reported):": (
        "no wait takes one duration exactly"
    ),
    "backends/docker_engine/client.py: self._generation += 1  ->  self._generation += 2": (
        "it is asked only whether it is the same"
    ),
    "backends/docker_engine/client.py: self._generation = 0  ->  self._generation = 1": (
        "it is asked only whether it is the same"
    ),
    "backends/docker/beside.py: while at + _HEAD <= len(data):  ->  while at + _HEAD < len(data):": (
        "a piece of no bytes adds nothing"
    ),
    "backends/docker/lifecycle.py: il for container_id, until in self._asked.items() if until > now}  ->  il for container_id, until in self._asked.items() if until >= now}": (
        "a clock is never at one instant exactly"
    ),
    "backends/docker/states.py: match = _HEALTH.search(container.get('Status', ''))  ->  match = _HEALTH.search(container.get('Status', 'x'))": (
        "neither is the word of a health check"
    ),
    "backends/kubernetes/logs/container_log.py: latest = part.latest if part else 0  ->  latest = part.latest if part else 1": (
        "no line is of the first nanosecond of 1970"
    ),
    "components/standalone.py: return 1 + max((self._depth(self._modules[path]) for path in used if  ->  return 2 + max((self._depth(self._modules[path]) for path in used if": (
        "the order is the same"
    ),
    "specs/status.py: if end >= 0:  ->  if end > 0:": "it is looked for behind the start",
    "specs/status.py: return after > before or (before, after) == (AppState.RUNNING, AppState.PE  ->  return after >= before or (before, after) == (AppState.RUNNING, AppState.PE": (
        "equal ones have been answered"
    ),
    "specs/foreign.py: if text.count('[') + text.count('{') > MAX_NESTING and _is_too_deep(value):  ->  if text.count('[') + text.count('') > MAX_NESTING and _is_too_deep(value):": (
        "the walk tells, and takes longer alone"
    ),
    "specs/roles.py: with ThreadPoolExecutor(max_workers=1) as thread:  ->  with ThreadPoolExecutor(max_workers=2) as thread:": (
        "it is asked for one thing"
    ),
    "logs/view/match_index.py: .file == row.file and later.start == row.end and (later.end - first.start <= _MAX_READ)  ->  .file == row.file and later.start == row.end and (later.end + first.start <= _MAX_READ)": (
        "fewer rows are read at once"
    ),
    "logs/view/line_index.py: if key.number < self._older.end:  ->  if key.number <= self._older.end:": (
        "there is nothing before it to drop"
    ),
    "logs/spool/spool_file.py: descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)  ->  descriptor = os.open(self.path, os.O_RDONLY & os.O_CLOEXEC | os.O_NOFOLLOW)": (
        "Python opens a file so that no child has it"
    ),
    "logs/pattern/required.py: window = data[low if low > 0 else 0:low + len(anchor.text)]  ->  window = data[low if low >= 0 else 0:low + len(anchor.text)]": (
        "0 is 0"
    ),
    "backends/history/journal.py: self._generation = 0  ->  self._generation = 1": ("it is compared alone"),
    "backends/history/journal.py: self._listed_at = -math.inf  ->  pass": ("it is set as the folder is first listed"),
    "backends/history/journal.py: self._settled = False  ->  self._settled = True": (
        "it is set as the folder is first listed"
    ),
    "backends/history/journal.py:  and stamp == self._folder_stamp and (self._settled or now < self._listed_at + again):  ->   and stamp == self._folder_stamp and (self._settled or now <= self._listed_at + again):": (
        "a clock is never at one instant exactly"
    ),
    "backends/history/journal.py: self._settled = stamp is not None and stamp < before - _SETTLED  ->  self._settled = stamp is not None and stamp <= before - _SETTLED": (
        "a clock is never at one instant exactly"
    ),
    "backends/history/journal.py: self._entries[record_id] = _Entry('', '', '')  ->  self._entries[record_id] = _Entry('x', '', '')": (
        "nobody looks up what cannot be read"
    ),
    "backends/history/journal.py: self._entries[record_id] = _Entry('', '', '')  ->  self._entries[record_id] = _Entry('', '', 'x')": (
        "nobody looks up what cannot be read"
    ),
    "backends/history/journal.py: if handle and self._by_handle.get(handle, '') < record_id:  ->  if handle and self._by_handle.get(handle, '') <= record_id:": (
        "it is the same record"
    ),
    "backends/history/journal.py: if keep and stamp is not None:  ->  if keep or stamp is not None:": (
        "what is kept is kept once more"
    ),
    "backends/history/cancellations.py: eplica.state is AppState.FAILED and (replica.finished_at or 0.0) >= cancelled.at:  ->  eplica.state is AppState.FAILED and (replica.finished_at or 1.0) >= cancelled.at:": (
        "no job was cancelled so long ago"
    ),
    "backends/shared/secrets.py: if stop > end:  ->  if stop >= end:": (
        "of two that end at one place the second adds nothing"
    ),
    "backends/shared/stamped_log.py: UNKNOWN = -1  ->  UNKNOWN = -2": ("a number of ours, as good as another"),
    "backends/shared/stamped_log.py: if len(line) <= _PIECE and self._within is None:  ->  if len(line) < _PIECE and self._within is None:": (
        "both ways give the same"
    ),
    "backends/shared/stamped_log.py: began, stream = (0, '')  ->  began, stream = (1, '')": (
        "it is set with the first piece"
    ),
    "backends/shared/stamped_log.py: began, stream = (0, '')  ->  began, stream = (0, 'x')": (
        "it is set with the first piece"
    ),
    "backends/shared/outage.py: if stop.is_set() or (left is not None and left <= 0):  ->  if stop.is_set() or (left is not None and left < 0):": (
        "a clock is never at one instant exactly"
    ),
    "backends/shared/bounded_command.py: if left <= 0:  ->  if left < 0:": ("a clock is never at one instant exactly"),
    "backends/shared/parallel.py: eadPoolExecutor(min(most, len(listed)), thread_name_prefix='parallel-map')  ->  eadPoolExecutor(min(most, len(listed)), thread_name_prefix='')": (
        "the names of threads are for debuggers"
    ),
    "backends/shared/progress.py: _current: ContextVar[Progress] = ContextVar('torchx_tui_launch_progress', default=_NOBODY)  ->  _current: ContextVar[Progress] = ContextVar('', default=_NOBODY)": (
        "its name is for debuggers"
    ),
    "backends/shared/streaming_response.py: nnection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  ->  nnection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 2)": (
        "any number but 0 turns it on"
    ),
    "backends/types.py: if at is not None and (not (type(at) is float and 0.0 <= at < MAX_EPOCH_S)):  ->  if at is not None or not (type(at) is float and 0.0 <= at < MAX_EPOCH_S):": (
        "None stays None"
    ),
    "backends/types.py: if at is not None and (not (type(at) is float and 0.0 <= at < MAX_EPOCH_S)):  ->  if at is not None and (not (type(at) is float and 1.0 <= at < MAX_EPOCH_S)):": (
        "a time is left as it is either way"
    ),
    "backends/shared/file_lines.py: return LogSegment(0, 0, 0, 0, None, 'n')  ->  return LogSegment(0, 1, 0, 0, None, 'n')": (
        "of no file, it is passed over"
    ),
    "backends/shared/file_lines.py: return LogSegment(0, 0, 0, 0, None, 'n')  ->  return LogSegment(0, 0, 1, 0, None, 'n')": (
        "of no file, it is passed over"
    ),
    "backends/shared/file_lines.py: return LogSegment(0, 0, 0, 0, None, 'n')  ->  return LogSegment(0, 0, 0, 1, None, 'n')": (
        "of no file, it is passed over"
    ),
    "backends/shared/file_lines.py: return LogSegment(0, 0, 0, 0, None, 'n')  ->  return LogSegment(0, 0, 0, 0, None, '')": (
        "of no file, it is passed over"
    ),
    "backends/torchxconfig.py: section = ''  ->  section = 'x'": "a key before all sections is refused",
    "backends/torchxconfig.py: place = ConfigValue('', path, section, key, line).place  ->  place = ConfigValue('x', path, section, key, line).place": (
        "only its place is asked for"
    ),
    "backends/local/supervisor.py: if self.file >= 0:  ->  if self.file > 0:": "0 is the standard input",
    "backends/local/supervisor.py: les = [self.woken] + ([self.watch.file] if self.watch.file >= 0 else [])  ->  les = [self.woken] + ([self.watch.file] if self.watch.file > 0 else [])": (
        "0 is the standard input"
    ),
    "backends/local/supervisor.py: os.read(self.woken, 1 << 12)  ->  os.read(self.woken, 2 << 12)": (
        "what is left is read the next time"
    ),
    "backends/local/supervisor.py: def replace_file(path: str, data: bytes, sync: bool=True) -> None:  ->  def replace_file(path: str, data: bytes, sync: bool=False) -> None:": (
        "only a machine that loses its power tells"
    ),
    "backends/local/usage.py: return (None, 0.0, 0)  ->  return (None, 0.0, 1)": "what has no identity is not counted",
    "backends/local/torchx/processes.py: known[name] = known_process  ->  pass": "it is read again, which takes longer alone",
    "tui/watch/feed.py: self._posted = ''  ->  self._posted = 'x'": "neither is what was found",
    "tui/job/doing.py: self._activity = Activity()  ->  pass": "the pane has a size, and draws, only once it has an activity",
    "tui/launch/component_picker.py: text = text[max(0, len(text) - width + 1):]  ->  text = text[max(1, len(text) - width + 1):]": (
        "a text that is too wide loses its first letter either way"
    ),
    "tui/launch/component_picker.py: event.stop()  ->  pass": "nobody above listens to it",
    "tui/launch/form_editor.py: self._findings: list[Finding] = []  ->  pass": "it is set before the form is seen",
    "tui/launch/field_dialogs.py: yield Static(headers, markup=False)  ->  yield Static(headers, markup=True)": (
        "it is a Text, which is never parsed"
    ),
    "tui/launch/form.py: .call_after_refresh(self.scroll_to_widget, focused, animate=False)  ->  .call_after_refresh(self.scroll_to_widget, focused, animate=True)": (
        "the app animates nothing"
    ),
    "tui/launch/dry_run.py: self._progress = None  ->  pass": "what was ended is ended once more",
    "tui/launch/dry_run.py: self._generation = self._answered = 0  ->  self._generation = self._answered = 1": (
        "they are only compared"
    ),
    "tui/launch/form.py: lain(model.doc.name or (model.base.name if model.base else '')))  ->  lain(model.doc.name or (model.base.name if model.base else 'x')))": (
        "a form is of a component or of a job"
    ),
    "tui/launch/form_editor.py: @work(thread=True, group='keep-guest', exit_on_error=False) def _keep_guest(self) -> None:  ->  @work(thread=True, group='', exit_on_error=False) def _keep_guest(self) -> None:": (
        "no other work is of either group"
    ),
    "tui/launch/preview.py: self._has_places = False  ->  self._has_places = True": "it is set before the form is seen",
    "tui/launch/preview.py: self._workspace = ''  ->  self._workspace = 'x'": "it is set before the form is seen",
    "tui/launch/preview.py: self._unreadable = ''  ->  self._unreadable = 'x'": "it is set with the workspace",
    "tui/launch/sweep_dialog.py: NGS = [Binding('ctrl+s', 'confirm', 'Launch them', priority=True, id='dialog.sweep', show=False)]  ->  NGS = [Binding('ctrl+s', 'confirm', 'Launch them', priority=False, id='dialog.sweep', show=False)]": (
        "no part of the dialog takes this key"
    ),
    "tui/job/actions.py: ted(self.target_rows(), key=lambda row: row.submitted_at or 0)  ->  ted(self.target_rows(), key=lambda row: row.submitted_at or 1)": (
        "no job was submitted in 1970"
    ),
}
