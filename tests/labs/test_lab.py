"""The lab: whatever a student's answer does, the notebook goes on, says what it saw, and remembers."""

import dataclasses
import html
import inspect
import json
import os
import random
import re
import sys
import threading
import time
import warnings

import pytest
import torch

from course_lib import lab as lab_module
from course_lib import progress
from course_lib.checks import Exercise, Wrong, describe, function_checks, grade
from course_lib.exercises import rnn_limits
from course_lib.lab import CheckFailed, ClaimFailed, Lab, Panel
from course_lib.recurrent import elman_step

LESSON = "01_rnn_limits"
ELMAN = rnn_limits.EXERCISES[0]


@pytest.fixture(autouse=True)
def record(tmp_path, monkeypatch):
    """The progress of each test lies in a folder of its own."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(path))
    monkeypatch.setenv("COURSE_PROFILE", "cpu")
    monkeypatch.delenv("COURSE_GRADING", raising=False)
    return path


@pytest.fixture
def shown(monkeypatch):
    """The panels that were displayed."""
    panels: list[Panel] = []
    monkeypatch.setattr(lab_module, "display", panels.append)
    return panels


@pytest.fixture
def lab(shown):
    return Lab(LESSON)


def exercise(*checks, seconds=5.0, reference=elman_step) -> Exercise:
    return Exercise("9.1", "made for tests", reference, checks, "a nudge", "a sketch", seconds=seconds)


def call(answer):
    answer(1)


def no_tanh(x, h, W, U, b):
    return x @ W.T + h @ U.T + b


def right(x, h, W, U, b):
    return torch.tanh(no_tanh(x, h, W, U, b))


def untouched(x, h, W, U, b):
    raise NotImplementedError


# --- grade ----------------------------------------------------------------------------------------------------------


def test_time_limit_ends_the_loop():
    def forever(x):
        while True:
            pass

    before, start = threading.active_count(), time.perf_counter()
    verdict = grade(exercise(call, seconds=0.2), forever)
    assert verdict.state == "wrong"
    assert verdict.reason == "No answer after 0.2 s: is there a loop that never ends?"
    assert time.perf_counter() - start < 2
    assert threading.active_count() == before  # nothing goes on in the background


def test_time_limit_ends_a_loop_that_swallows_the_first_exceptions():
    def stubborn(x):
        for _ in range(3):
            try:
                while True:
                    pass
            except:  # noqa: E722
                pass

    before = threading.active_count()
    assert grade(exercise(call, seconds=0.2), stubborn).reason.startswith("No answer after 0.2 s")
    assert threading.active_count() == before


def test_call_that_cannot_be_ended_is_left_behind():
    start = time.perf_counter()
    assert grade(exercise(call, seconds=0.2), lambda x: time.sleep(3)).reason.startswith("No answer after 0.2 s")
    assert time.perf_counter() - start < 2


def test_stopping_the_cell_also_stops_the_answer(monkeypatch):
    def forever(x):
        while True:
            pass

    def interrupted(self, timeout=None, join=threading.Thread.join):
        monkeypatch.setattr(threading.Thread, "join", join)
        raise KeyboardInterrupt

    before = threading.active_count()
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        grade(exercise(call), forever)
    assert threading.active_count() == before
    assert sys.stdout is not None


def test_prints_are_kept_and_endless_ones_cut(capsys):
    def chatty(x):
        print("seen")
        print("on stderr", file=sys.stderr)

    def endless(x):
        while True:
            print("again" * 100)

    assert grade(exercise(call), chatty).printed == "seen\non stderr\n"
    assert len(grade(exercise(call, seconds=0.3), endless).printed) < 11_000
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "error", [ValueError("no good"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), TimeoutError()]
)
def test_whatever_is_raised_becomes_feedback(error):
    def raising(x):
        raise error

    verdict = grade(exercise(call), raising)
    assert verdict.state == "wrong"
    assert verdict.reason.startswith(f"It stopped with {type(error).__name__} at your line `raise error`")


def test_not_implemented_of_torch_is_not_an_untouched_stub():
    def raising(x):
        raise NotImplementedError("'norm' not implemented for 'Long'")

    assert grade(exercise(call), raising).state == "wrong"
    assert grade(exercise(call), lambda x: untouched(x, 1, 1, 1, 1)).state == "untouched"


def test_what_is_not_a_function():
    tensor = torch.zeros(2, 3)
    assert grade(ELMAN, tensor).reason == (
        "Expected a function `elman_step`; got a tensor of shape (2, 3). Did you call it?"
    )
    assert grade(ELMAN, torch.tanh).state == "wrong"  # a built-in function has no signature
    assert grade(ELMAN, torch.nn.RNNCell(4, 5)).state == "wrong"
    assert grade(ELMAN, torch.nn.RNNCell).state == "wrong"
    assert grade(ELMAN, 3).reason.startswith("Expected a function `elman_step`; got an int")


def test_counts_the_checks_that_passed():
    def first(answer):
        pass

    def second(answer):
        raise Wrong("No.")

    verdict = grade(exercise(first, second, first), print)
    assert (verdict.state, verdict.done, verdict.total, verdict.reason) == ("wrong", 1, 3, "No.")


def test_grading_leaves_no_trace():
    def meddling(x, h, W, U, b):
        torch.manual_seed(7)
        random.seed(7)
        torch.set_num_threads(2)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        warnings.simplefilter("error")
        torch.nn.RNNCell(4, 5)
        return right(x, h, W, U, b)

    torch.manual_seed(1)
    random.seed(1)
    expected = torch.rand(3), random.random()
    threads, dtype, filters = torch.get_num_threads(), torch.get_default_dtype(), list(warnings.filters)
    torch.manual_seed(1)
    random.seed(1)
    for answer in (meddling, right, no_tanh, *(e.reference for e in rnn_limits.EXERCISES)):
        for each in rnn_limits.EXERCISES:
            grade(each, answer)
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]
    assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)
    assert torch.is_grad_enabled()
    assert warnings.filters == filters


def test_passes_also_where_the_notebook_has_switched_gradients_off():
    with torch.no_grad():
        assert all(grade(e, e.reference).state == "passed" for e in rnn_limits.EXERCISES)


def test_warnings_are_not_taken_for_prints():
    def warning(x):
        warnings.warn("careful", stacklevel=1)

    assert grade(exercise(call), warning).printed == ""


def test_slip_is_said_before_the_property():
    def positive(answer):
        raise Wrong("It must be positive.")

    def double(x):
        return 2 * x

    cases = [(torch.ones(2),), (torch.ones(3),)]
    slips = [(lambda x: -2 * x, "The sign is wrong.")]
    checks = function_checks(double, cases, ["y"], slips, properties=[positive])
    assert grade(exercise(*checks, reference=double), lambda x: -2 * x).reason == "The sign is wrong."
    assert grade(exercise(*checks, reference=double), lambda x: -3 * x).reason == "It must be positive."


def test_measurements_need_no_gradient_and_no_dtype():
    def length(x):
        return x.norm()

    def measured(x):
        return torch.tensor(x.norm().item())

    cases = [(torch.ones(2),), (torch.ones(3),)]
    assert grade(exercise(*function_checks(length, cases, ["n"], differentiable=False)), measured).state == "passed"
    assert "must be torch.float64" in grade(exercise(*function_checks(length, cases, ["n"])), measured).reason
    whole = grade(exercise(*function_checks(length, cases, ["n"], differentiable=False)), lambda x: x.norm().long())
    assert "got torch.int64" in whole.reason


def test_describe():
    assert [describe(v) for v in (torch.zeros(()), [1, 2], (1, 2), 0.5, "a", iter([]))] == [
        "a tensor of shape ()",
        "a list of 2",
        "a tuple of 2",
        "a float",
        "a str",
        "a list_iterator",
    ]


# --- check ----------------------------------------------------------------------------------------------------------


def test_right_answer_goes_on(lab, shown):
    assert lab.check("1.1", right) is right
    assert shown[-1].mark == "✓"
    assert "Right. The lesson goes on with yours." in repr(shown[-1])


def test_library_goes_on_for_a_wrong_or_an_untouched_answer(lab, shown):
    assert lab.check("1.1", no_tanh) is elman_step
    assert shown[-1].mark == "✗"
    assert 'For a nudge: `lab.hint("1.1")`' in repr(shown[-1])
    assert lab.check("1.1", untouched) is elman_step
    assert shown[-1].mark == "○"
    assert "not attempted" in repr(shown[-1])


def test_grading_raises(lab, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING", "1")
    with pytest.raises(CheckFailed, match=r"1\.1 wrong: This is the sum without its tanh"):
        lab.check("1.1", no_tanh)
    with pytest.raises(CheckFailed, match=r"1\.1 untouched: not attempted"):
        lab.check("1.1", untouched)
    assert lab.check("1.1", right) is right


def test_check_leaves_the_random_numbers_alone(lab):
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    lab.check("1.1", lambda x, h, W, U, b: right(x, h, W, U, b) * torch.rand(()))
    assert torch.equal(torch.rand(2), expected)


def test_printed_html_is_escaped(lab, shown):
    def sly(x, h, W, U, b):
        print("<script>alert(1)</script>")
        raise ValueError("<img src=x onerror=alert(1)>")

    lab.check("1.1", sly)
    page = shown[-1]._repr_html_()
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "It printed: <script>alert(1)</script>" in repr(shown[-1])


def letters(text: str) -> str:
    """Without white space, tags and the marks of code."""
    return "".join(html.unescape(re.sub(r"</?[a-z]+\b[^>]*>", "", text)).replace("`", "").split())


def test_twins_say_the_same(lab, shown):
    lab.check("1.1", no_tanh)
    lab.check("1.1", right)
    lab.check("1.2", untouched)
    for _ in range(3):
        lab.hint("1.3")
    lab.source(elman_step)
    lab.predict("a guess", 3)
    lab.reveal("a guess", 4.0)
    lab.claim("One < two & three", 1.0, below=2, source="S0")
    lab.progress()
    lab.summary()
    assert len(shown) == 13
    for panel in shown:
        page, text = letters(panel._repr_html_()), "".join(repr(panel).replace("`", "").split())
        for line in panel.text_only:  # a table in the HTML
            text = text.replace("".join(line.replace("`", "").split()), "")
        assert page.replace(letters(panel.html_only), "") == text
    assert "One<two&three" in letters(shown[-1]._repr_html_())
    assert "One < two & three" in repr(shown[-1])


def test_unknown_lessons_and_exercises(lab):
    for name in ("99_nothing", "01", "1_no_such"):
        with pytest.raises(ValueError, match="There is no lesson"):
            Lab(name)
    for method in (lab.hint, lab.solution):
        with pytest.raises(KeyError, match=re.escape("has no exercise '7.7'; it has 1.1, 1.2")):
            method("7.7")
    with pytest.raises(KeyError, match=re.escape("has no exercise '7.7'")):
        lab.check("7.7", right)


# --- hints, sources, predictions ------------------------------------------------------------------------------------


def test_hint_opens_in_three_stages(lab, shown):
    for _ in range(4):
        lab.hint("1.2")
    nudge, sketch, solution, again = shown[1:]
    assert nudge.title == "1.2 hint 1 of 3"
    assert "chunk(4, dim=-1)" in nudge.lines[0]
    assert "a sketch" in nudge.lines[1]
    assert sketch.title == "1.2 hint 2 of 3"
    assert "the solution" in sketch.lines[0]
    assert sketch.code.startswith("sum = ")
    assert solution.code == again.code
    assert "def lstm_step(" in solution.code


def test_solution_and_source_show_the_library(lab, shown):
    lab.solution("1.1")
    lab.source(elman_step)
    assert shown[-1].code == shown[-2].code == inspect.getsource(elman_step).rstrip()
    assert shown[-1].title == "`elman_step` in course_lib/recurrent.py"


@pytest.mark.parametrize("each", rnn_limits.EXERCISES, ids=lambda e: e.id)
def test_every_exercise_has_its_hints(each):
    assert each.nudge.endswith((".", "?"))
    assert each.sketch.strip()
    assert each.title


def test_predictions(lab, shown, record):
    lab.predict("speed", None)
    assert "none yet" in repr(shown[-1])
    lab.predict("speed", "<b>fast</b>")
    assert "noted" in repr(shown[-1])
    lab.reveal("speed", 0.123456)
    assert "you said <b>&lt;b&gt;fast&lt;/b&gt;</b> · measured <b>0.123</b>" in shown[-1]._repr_html_()
    assert "0.123" not in repr(shown[-1])
    with pytest.raises(KeyError, match="No prediction is called 'size'; predictions made so far: 'speed'"):
        lab.reveal("size", 1)
    assert json.loads(record.read_text())[LESSON]["guesses"] == {"speed": "'<b>fast</b>'"}


# --- claims ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "bounds", "state"),
    [
        (2.0, {"above": 1}, "held"),
        (1.0, {"above": 1}, "failed"),
        (0.5, {"below": 1}, "held"),
        (1.0, {"below": 1}, "failed"),
        (0.5, {"above": 0, "below": 1}, "held"),
        (-0.5, {"above": 0, "below": 1}, "failed"),
        (1.5, {"above": 0, "below": 1}, "failed"),
        (float("nan"), {"below": 1}, "failed"),
        (float("nan"), {"above": 1}, "failed"),
        (float("inf"), {"above": 1}, "held"),
        (torch.tensor(0.5), {"below": 1}, "held"),
        (torch.tensor([2.0], requires_grad=True), {"below": 1}, "failed"),
        (0, {"above": -1}, "held"),
    ],
)
def test_claim(lab, shown, value, bounds, state):
    lab.claim("A sentence", value, source="S1", **bounds)
    assert lab.claims["A sentence"].state == state
    assert shown[-1].mark == {"held": "✓", "failed": "✗"}[state]
    assert "measured" in shown[-1]._repr_html_()
    assert "measured" not in repr(shown[-1])


def test_claim_without_a_bound(lab):
    with pytest.raises(ValueError, match="The claim 'A sentence' has no bound"):
        lab.claim("A sentence", 1.0, source="S1")


def test_summary_raises_when_a_claim_failed(lab, shown, record):
    lab.check("1.1", right)
    lab.claim("Holds", 1.0, below=2, source="S1")
    lab.summary()
    lab.claim("Fails", 3.0, below=2, source="S1")
    with pytest.raises(
        ClaimFailed, match=re.escape("1 claim(s) did not hold here. Fails: below 2 expected, 3 measured")
    ):
        lab.summary()
    assert shown[-1].title == f"Lesson {LESSON}: 1 of 5 exercises solved, 2 claims measured"
    assert "✓ 1.1 Elman step" in repr(shown[-1])
    assert "✗ Fails (below 2, S1)" in repr(shown[-1])
    assert json.loads(record.read_text())[LESSON]["claims"] == {"Holds": "1", "Fails": "3"}
    lab.claim("Fails", 1.0, below=2, source="S1")  # measured again, and now it holds
    lab.summary()


def test_smoke_profile_does_not_assert(shown, monkeypatch):
    monkeypatch.setenv("COURSE_PROFILE", "smoke")
    lab = Lab(LESSON)
    lab.claim("Fails", 3.0, below=2, source="S1")
    assert shown[-1].mark == "○"
    lab.summary()
    assert lab.pick(cpu=1, smoke=2) == 2
    assert lab.pick(cpu=1, gpu=3) == 1


# --- progress -------------------------------------------------------------------------------------------------------


def entry(record, id="1.1"):
    return json.loads(record.read_text())[LESSON]["exercises"][id]


def test_attempts_are_counted_and_solved_stays_solved(lab, record):
    lab.check("1.1", untouched)
    assert entry(record) == {"state": "untouched", "attempts": 0}
    lab.check("1.1", no_tanh)
    assert entry(record) == {"state": "wrong", "attempts": 1}
    lab.check("1.1", right)
    assert entry(record) == {"state": "passed", "attempts": 2}
    lab.check("1.1", untouched)
    lab.check("1.1", no_tanh)
    assert entry(record) == {"state": "passed", "attempts": 3}
    assert lab.states["1.1"] == "wrong"


def test_progress_is_shown(lab, shown):
    lab.progress()
    assert "nothing recorded yet" in repr(shown[-1])
    lab.check("1.1", right)
    lab.check("1.2", None)
    lab.progress()
    assert "01_rnn_limits: ✓○ 1 solved" in repr(shown[-1])


def test_two_labs_at_once(shown, record):
    first, second = Lab(LESSON), Lab(LESSON)
    first.check("1.1", right)
    second.check("1.5", no_tanh)
    assert entry(record)["state"] == "passed"
    assert entry(record, "1.5")["state"] == "wrong"


def test_many_writers_lose_nothing(record):
    def add(name):
        for _ in range(10):
            assert progress.update(LESSON, lambda r: r.update({name: r.get(name, 0) + 1})) == ""

    writers = [threading.Thread(target=add, args=(f"writer {i}",)) for i in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert json.loads(record.read_text())[LESSON] == {f"writer {i}": 10 for i in range(4)}


@pytest.mark.parametrize(
    "damage",
    [
        '{"01_rnn_limits": {"exercises": []}}',
        '{"01_rnn_limits": {"exercises": {"1.1": "passed"}}}',
        '{"01_rnn_limits": {"exercises": {"1.1": {}}}}',
        '{"01_rnn_limits": {"guesses": 3}}',
        "",
        "{",
        "[]",
        '{"01_rnn_limits": 3}',
        "null",
        "\x00\x00",
    ],
)
def test_damaged_record_is_set_aside(shown, record, damage):
    record.write_text(damage)
    lab = Lab(LESSON)
    assert "was damaged" in repr(shown[0])
    [aside] = record.parent.glob("progress.damaged-*.json")
    assert aside.read_text() == damage
    lab.check("1.1", right)
    assert entry(record)["state"] == "passed"


def test_record_that_is_not_text_is_set_aside(shown, record):
    record.write_bytes(b"\xff\xfe\x00bad")
    Lab(LESSON)
    [aside] = record.parent.glob("progress.damaged-*.json")
    assert aside.read_bytes() == b"\xff\xfe\x00bad"


def test_folder_that_is_not_there_costs_the_record_only(shown, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file where a folder should be")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "file" / "progress.json"))
    lab = Lab(LESSON)
    assert lab.check("1.1", right) is right
    assert "could not be saved" in shown[-1]._repr_html_()
    assert "could not be saved" not in repr(shown[-1])


@pytest.mark.parametrize("call", ["replace", "fsync", "open"])
def test_folder_that_cannot_be_written_to(lab, shown, record, monkeypatch, call):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    lab.check("1.1", no_tanh)
    before = record.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        assert lab.check("1.1", right) is right
    assert "Permission denied" in shown[-1]._repr_html_()
    assert record.read_text() == before
    assert [p.name for p in record.parent.iterdir() if not p.name.endswith(".lock")] == ["progress.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs on this system")
def test_fifo_is_never_moved(shown, record):
    os.mkfifo(record)
    lab = Lab(LESSON)
    assert "is not a regular file" in repr(shown[0])
    assert lab.check("1.1", right) is right
    lab.progress()
    assert record.is_fifo()
    assert list(record.parent.iterdir()) == [record]


def test_folder_is_never_moved(shown, record):
    record.mkdir()
    (record / "kept").write_text("here")
    lab = Lab(LESSON)
    assert lab.check("1.1", right) is right
    assert (record / "kept").read_text() == "here"


def test_killed_while_writing(lab, record, monkeypatch):
    """The old record stays whole, and what the killed process left behind does no harm."""

    def killed(handle):
        raise KeyboardInterrupt

    lab.check("1.1", no_tanh)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            lab.check("1.1", right)
    assert entry(record)["state"] == "wrong"
    (record.parent / ".progress.json.abc123").write_text('{"half')
    lab.check("1.1", right)
    assert entry(record)["state"] == "passed"


def test_lab_of_an_exercise_made_for_tests(lab):
    """A short limit: the notebook goes on with the library's piece."""

    def forever(x, h, W, U, b):
        while True:
            pass

    lab.exercises["1.1"] = dataclasses.replace(ELMAN, seconds=0.2)
    assert lab.check("1.1", forever) is elman_step
