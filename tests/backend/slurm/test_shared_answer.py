"""How seldom Slurm is asked: by all sessions together, after actions, when it is slow, and when it is down."""

import multiprocessing
import threading
from pathlib import Path

import pytest
from support.background import in_background
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.slurm.shared_answer import ActionTimes, Intervals, SharedAnswer
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.status import AppState


class Question:
    """What is asked, and how often."""

    def __init__(self, clock):
        self.asked = []
        self.took = 0.0
        self.error = None
        self._clock = clock

    def __call__(self):
        self.asked.append(self._clock.now)
        self._clock.now += self.took
        if self.error:
            raise self.error
        return f"answer {len(self.asked)}"


def sessions(folder, question, count=1):
    """Return what each of several sessions has."""
    return [
        SharedAnswer(folder / "queue", question, Intervals(10.0, 2.0), ActionTimes(folder / "acted"))
        for _ in range(count)
    ]


def watch(answers, clock, seconds):
    """Let every session look once a second."""
    end = clock.now + seconds
    while clock.now < end:
        for answer in answers:
            answer.get()
        clock.now += 1


def test_three_sessions_ask_six_times_a_minute_together(tmp_path, clock):
    question = Question(clock)
    answers = sessions(tmp_path, question, 3)
    watch(answers, clock, 300)
    assert len(question.asked) == 30


def test_what_stays_the_same_is_asked_for_less_often(tmp_path, clock):
    question = Question(clock)
    answers = sessions(tmp_path, question, 3)
    for answer in answers:
        answer._is_same = lambda before, now: True
    watch(answers, clock, 60)
    assert len(question.asked) == 6
    # The controller takes two requests for each: the queue, and the partitions that squeue asks for besides.
    watch(answers, clock, 300)
    assert 2 * (len(question.asked) - 6) / 5 <= 6
    # What changes is followed at the usual pace.
    answers[0]._is_same = lambda before, now: before == now
    watch(answers, clock, 120)
    assert question.asked[-1] - question.asked[-2] == 10
    assert {answer.get().text for answer in answers} == {answers[0].get().text}


def test_questions_are_frequent_after_an_action(tmp_path, clock):
    question = Question(clock)
    answers = sessions(tmp_path, question, 2)
    watch(answers, clock, 1)
    assert len(question.asked) == 1
    ActionTimes(tmp_path / "acted").note()
    # A moment later, as clocks are coarse; the answer is younger than the shortest interval.
    clock.now += 0.01
    answers[1].get()
    assert len(question.asked) == 2
    watch(answers, clock, 30)
    assert 14 <= len(question.asked) <= 17
    before = len(question.asked)
    clock.now += 10
    watch(answers, clock, 60)
    assert len(question.asked) - before <= 7


def test_a_slow_controller_is_asked_seldom(tmp_path, clock):
    question = Question(clock)
    question.took = 3.0
    watch(sessions(tmp_path, question, 2), clock, 300)
    assert len(question.asked) <= 6


def test_a_controller_that_is_down_is_asked_with_growing_pauses(tmp_path, clock):
    question = Question(clock)
    first, second = sessions(tmp_path, question, 2)
    assert first.get().text == "answer 1"
    question.error = BackendUnavailableError("Slurm does not answer: down")
    end = clock.now + 600
    while clock.now < end:
        for answer in (first, second):
            if clock.now > question.asked[0] + 11:
                with pytest.raises(BackendUnavailableError, match="does not answer: down"):
                    answer.get()
        clock.now += 1
    assert len(question.asked) <= 14
    question.error = None
    clock.now += 200
    assert second.get().text == first.get().text == f"answer {len(question.asked)}"


def test_any_other_error_is_not_asked_again_at_once(tmp_path, clock):
    question = Question(clock)
    question.error = SchedulerError("squeue failed: Invalid user")
    (answer,) = sessions(tmp_path, question)
    for _ in range(5):
        with pytest.raises(SchedulerError, match="Invalid user"):
            answer.get()
        clock.now += 1
    assert len(question.asked) == 1


def test_a_kept_answer_that_is_damaged_is_asked_for_anew(tmp_path, clock):
    question = Question(clock)
    for damage in (b"", b"{}\nx", b"\xff", b'{"asked_at": 1e400}\n'):
        (tmp_path / "queue").write_bytes(damage)
        (answer,) = sessions(tmp_path, question)
        assert answer.get().text == f"answer {len(question.asked)}"
    # A clock that was set back makes an answer no younger.
    clock.now -= 1000
    before = len(question.asked)
    answer.get()
    assert len(question.asked) == before + 1


def test_a_folder_that_cannot_be_written(clock):
    question = Question(clock)
    (answer,) = sessions(Path("/proc/none"), question)
    assert answer.get().text == "answer 1"
    assert answer.get().text == "answer 1"


def test_one_asks_while_others_wait(tmp_path):
    asked, go = [], threading.Event()

    def ask():
        asked.append(1)
        go.wait()
        return "told"

    answers = [SharedAnswer(tmp_path / "queue", ask, Intervals(60, 60)) for _ in range(4)]
    waiting = [in_background(answer.get) for answer in answers]
    wait_until(lambda: asked, "the question")
    go.set()
    assert [one.result(PATIENCE).text for one in waiting] == ["told"] * 4
    assert len(asked) == 1


def _list_once(done):
    done.put(len(SlurmScheduler("torchx").list()))


def test_processes_share_the_answer(commands):
    commands.queue({}, {"JobID": "8"})
    context = multiprocessing.get_context("fork")
    done = context.Queue()
    processes = [context.Process(target=_list_once, args=(done,)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [done.get(timeout=PATIENCE) for _ in processes] == [2, 2, 2]
    for process in processes:
        process.join()
    assert len(commands.calls("squeue")) == 1
    assert len(commands.calls("sacct")) == 1


def test_controller_and_accounting_that_are_down(slurm, commands):
    commands.queue({})
    commands.answer("sacct", err="sacct: error: Problem talking to the database: Connection refused\n", code=1)
    assert [row.state for row in slurm.list()] == [AppState.RUNNING]
    down = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    commands.answer("squeue", err=down, code=1)
    with pytest.raises(BackendUnavailableError, match="Unable to contact slurm controller"):
        slurm.list()


def test_accounting_is_not_asked_while_jobs_are_in_the_queue(slurm, commands, clock):
    commands.queue({}, {"JobID": "8", "State": "COMPLETED"})
    commands.answer("sacct")
    for _ in range(5):
        slurm.list()
    commands.queue({"JobID": "8", "State": "COMPLETED"})
    clock.now += 1
    for _ in range(5):
        slurm.list()
    # It is not asked again at once for the one that left.
    assert len(commands.calls("sacct")) == 1
    lost = next(row for row in slurm.list() if row.app_id == "7")
    assert lost.state is AppState.UNKNOWN
    assert lost.msg == "it has left the queue, and accounting does not say how it ended"
