"""The lab: whatever a student's answer does, the notebook goes on, says what it saw, and remembers."""

import dataclasses
import functools
import html
import importlib.util
import inspect
import json
import math
import os
import random
import re
import subprocess
import sys
import threading
import time
import warnings
from types import FunctionType

import pytest
import torch
from without_double import WithoutDouble

from course_lib.exercises import applying_language_models, decoding_strategies, positional_encoding, rnn_limits
from course_lib.lab import CheckFailed, ClaimFailed, Lab, NotTheSame, Panel, progress
from course_lib.lab import lab as lab_module
from course_lib.lab.grading import Exercise, Verdict, Wrong, describe, grade
from course_lib.lab.ladder import Ladder, ModuleLadder, edits
from course_lib.lab.panels import verdict_panel
from course_lib.models.recurrent import elman_step

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


def test_what_a_check_prepares_is_not_in_the_answers_time():
    def noted(answer):
        threads.append(threading.current_thread())

    threads = []
    noted.prepare = lambda: threads.append(threading.current_thread())
    assert grade(exercise(noted), lambda x: x).state == "passed"
    prepared, checked = threads
    assert prepared is threading.current_thread() is not checked  # the limit is that of the other thread


def test_nothing_is_imported_inside_the_limit():
    """An import that the limit cuts short leaves a module in halves, for as long as the kernel lives."""
    told = """
import sys
import torch
from course_lib.lab import ladder
from course_lib.lab.grading import Wrong

def imported_by(check, answer):
    before = set(sys.modules)
    try:
        check(answer)
    except Wrong:
        pass
    return sorted(set(sys.modules) - before)

numbers = ladder.Ladder(lambda x: 2 * x, [(torch.ones(2, 3),)], returns=["x"]).numbers
print(imported_by(numbers, lambda x: 3 * x))
on_the_device = ladder.device_check()
on_the_device.prepare()
print(imported_by(on_the_device, lambda device: torch.arange(3, device=device) / 2))
"""
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_an_end_that_a_callback_swallows_is_not_reported(monkeypatch):
    """Python reports what is raised in `__del__` or in a weak reference's callback; here it is our own."""

    class Spins:
        def __del__(self):
            while True:
                pass

    def never(answer):
        Spins()  # the first end comes here
        while True:
            pass

    reports = []
    monkeypatch.setattr("sys.unraisablehook", reports.append)
    assert "never ends" in grade(exercise(never, seconds=0.2), right).reason
    assert not reports


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

    def twice(x):
        print(x)
        print(x)
        if x == 2:
            raise ValueError

    def other(answer):
        answer(2)

    assert grade(exercise(call), chatty).printed == "seen\non stderr\n"
    assert len(grade(exercise(call, seconds=0.3), endless).printed) < 11_000
    assert grade(exercise(call, call), chatty).printed == "seen\non stderr\n", "of the first check, where all pass"
    assert grade(exercise(call, other), twice).printed == "2\n2\n", "of the check that failed"
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
        assert grade(ELMAN, right).state == "passed"


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
    checks = Ladder(double, cases, ["y"], slips, properties=[positive])
    assert grade(exercise(*checks, reference=double), lambda x: -2 * x).reason == "The sign is wrong."
    assert grade(exercise(*checks, reference=double), lambda x: -3 * x).reason == "It must be positive."


def test_measurements_need_no_gradient_and_no_dtype():
    def length(x):
        return x.norm()

    def measured(x):
        return torch.tensor(x.norm().item())

    cases = [(torch.ones(2),), (torch.ones(3),)]
    assert grade(exercise(*Ladder(length, cases, ["n"], differentiable=False)), measured).state == "passed"
    assert "no gradient reaches x" in grade(exercise(*Ladder(length, cases, ["n"])), measured).reason
    double = grade(exercise(*Ladder(length, cases, ["n"])), lambda x: x.norm().double())
    assert double.reason == "n must be torch.float32; got torch.float64."
    whole = grade(exercise(*Ladder(length, cases, ["n"], differentiable=False)), lambda x: x.norm().long())
    assert "got torch.int64" in whole.reason


def test_results_compared_as_something_else():
    def hide_below_0(x):
        return x.masked_fill(x < 0, -torch.inf)

    def with_a_low_number(x):
        return torch.where(x < 0, -1e9, x)

    cases = [(torch.tensor([1.0, -1.0]),), (torch.tensor([2.0, -1.0, 0.0]),)]
    slips = edits(hide_below_0, "-torch.inf → 0.0 · Hide with −∞.")
    checks = Ladder(hide_below_0, cases, ["x"], slips, differentiable=False, compared_as=lambda x: x.softmax(dim=-1))
    assert grade(exercise(*checks, reference=hide_below_0), with_a_low_number).state == "passed"
    assert grade(exercise(*checks, reference=hide_below_0), lambda x: x.relu()).reason == "Hide with −∞."
    assert "got a list of 1" in grade(exercise(*checks, reference=hide_below_0), lambda x: [x]).reason


def masked_sum(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return (x if mask is None else x * mask).sum(dim=-1)


def test_slip_is_known_where_the_answer_stops_on_another_case():
    cases = [(torch.ones(2, 3), torch.ones(3)), (torch.ones(2), None)]
    slips = edits(masked_sum, "x * mask → x * mask[:, None, None] · The mask fits as it is.")
    checks = Ladder(masked_sum, cases, ["the sum"], slips)
    verdict = grade(exercise(*checks, reference=masked_sum), lambda x, mask: (x * mask[:, None, None]).sum(dim=-1))
    assert verdict.reason == "Expected the sum of shape (2,); got (3, 2). The mask fits as it is."


def merge_words(words: list[str], with_: str) -> str:
    return with_.join(words)


def count_words(text: str) -> tuple[int, float]:
    return len(text.split()), len(text) / max(1, len(text.split()))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda words, with_: words, "Expected the text to be a text (str); got a list of 2."),
        (lambda words, with_: None, "Expected the text to be returned; got None"),
        (lambda words, with_: words.append("") or with_.join(words), "It changes its input words in place: make a new"),
        (lambda words, with_: with_.join(words[::-1]), "They are turned round."),
        (
            lambda words, with_: with_.join(words).upper(),
            "For words = ['a', 'b'], with_ = '-', from character 0 on: expected …'a-b'…, got …'A-B'….",
        ),
        (lambda words, with_: "".join(f"{word}{with_}" for word in words)[:-1], ""),
    ],
)
def test_ladder_of_texts(answer, says):
    slips = edits(merge_words, "join(words) → join(words[::-1]) · They are turned round.")
    cases = [(["a", "b"], "-"), (["low", "er", "s"], " ")]
    made = Ladder(merge_words, cases, returns=["the text"], slips=slips)
    assert [name for name, _ in made.rungs] == ["signature", "types", "repeatable", "inputs_kept", "numbers"]
    verdict = grade(exercise(*made, reference=merge_words), answer)
    assert (verdict.state, says in verdict.reason) == ("wrong" if says else "passed", True)


def test_edits_have_what_every_notebook_has():
    [(slip, _)] = edits(merge_words, "with_.join(words) → F.relu(torch.ones(2)).sum() · Numbers.")
    assert slip(["a"], "-") == 2


class Doubled(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return 2 * self.layer(x)


def test_an_answer_that_changes_the_layer_it_is_given_spoils_no_other_check():
    class Answer(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return 2 * self.layer(x)

    class OnTheLayer(Answer):
        def __init__(self, layer):
            super().__init__(layer)
            layer.more = torch.nn.Linear(1, 1)

    checks = ModuleLadder(Doubled, [((torch.nn.Linear(2, 3),), (torch.ones(4, 2),))], ["y"])
    assert "layer.more" in grade(exercise(*checks, reference=Doubled), OnTheLayer).reason
    assert grade(exercise(*checks, reference=Doubled), Answer).reason == ""


def test_rows_of_edits_go_on_in_the_next_line():
    table = """
        (words) → (words[::-1]) · Turned;
            · round.
        with_.join → "".join ; (words) → (words[1:]) ·
            · Short.
        with_.join → "".join ;
            (words) → (words[:1]) · One.
        (words) → (
            words * 2)
            · Twice.
        """
    made = edits(merge_words, table)
    assert [(slip(["a", "b"], "-"), sentence) for slip, sentence in made] == [
        ("b-a", "Turned; round."),
        ("b", "Short."),
        ("a", "One."),
        ("a-b-a-b", "Twice."),
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda text: len(text), "Expected words and mean to be returned; got an int."),
        (lambda text: (len(text.split()), "3"), "Expected mean to be a number; got a text (str)."),
        (lambda text: (3, len(text) / 3), "For text = 'of two and more' words must be 4; got 3."),
        (lambda text: [len(text.split()), torch.tensor(len(text) / max(1, len(text.split())))], ""),
        (lambda text: torch.tensor([len(text.split()), len(text) / max(1, len(text.split()))]), ""),
    ],
)
def test_ladder_of_numbers(answer, says):
    made = Ladder(count_words, [("a b c",), ("of two and more",)], returns=["words", "mean"])
    verdict = grade(exercise(*made, reference=count_words), answer)
    assert (verdict.state, says in verdict.reason) == ("wrong" if says else "passed", True), verdict.reason


def test_a_case_may_leave_out_what_has_a_default():
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    def tripled(x: float, factor: float = 3.0) -> float:
        return x * factor

    tensors = exercise(*Ladder(scaled, [(torch.ones(2), 3.0), (torch.ones(3),)], ["y"]), reference=scaled)
    assert grade(tensors, lambda x, factor=2.0: factor * x).state == "passed"
    numbers = exercise(*Ladder(tripled, [(1.0, 2.0), (4.0,)], ["y"]), reference=tripled)
    assert grade(numbers, lambda x, factor=1.0: x * factor).reason == "For x = 4.0 y must be 12; got 4."


def test_describe():
    assert [describe(v) for v in (torch.zeros(()), [1, 2], (1, 2), 0.5, "a", iter([]))] == [
        "a tensor of shape ()",
        "a list of 2",
        "a tuple of 2",
        "a float",
        "a text (str)",
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
    assert shown[-2].code == "import torch\nfrom torch import Tensor\n\n\n" + shown[-1].code
    assert shown[-1].code == inspect.getsource(elman_step).rstrip()
    assert shown[-1].title == "`elman_step` in course_lib/models/recurrent.py"


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
    assert "you said <b>&lt;b&gt;fast&lt;/b&gt;</b> · measured <b data-here>0.123</b>" in shown[-1]._repr_html_()
    assert "0.123" not in repr(shown[-1])
    lab.predict("speed", "<b>fast</b>")  # the cell, run again
    lab.predict("speed", 0.12)
    assert "noted (after the measurement)" in repr(shown[-1])
    lab.reveal("speed", 0.123456)
    assert "you said <b>0.12</b> (after the measurement) · measured" in shown[-1]._repr_html_()
    lab.reveal("size", 1)  # the cell with the prediction was left out
    assert "no prediction · measured <b data-here>1</b>" in shown[-1]._repr_html_()
    assert json.loads(record.read_text(encoding="utf-8"))[LESSON]["guesses"] == {"speed": "0.12"}


# --- the library's own piece, and cells that are run again ----------------------------------------------------------


def covers() -> dict:
    """The library's piece, imported or wrapped in ways that people find."""

    @functools.wraps(elman_step)
    def wrapped(*arguments):
        return elman_step(*arguments)

    def calling(x, h, W, U, b):
        return elman_step(x, h, W, U, b)

    class Callable:
        def __call__(self, x, h, W, U, b):
            return elman_step(x, h, W, U, b)

    spec = importlib.util.find_spec(elman_step.__module__)
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    return {
        "itself": elman_step,
        "partial": functools.partial(elman_step),
        "wrapped": wrapped,
        "calling": calling,
        "lambda": lambda x, h, W, U, b: elman_step(x, h, W, U, b),
        "cached": functools.cache(elman_step),
        "object": Callable(),
        "by torch": lambda *a: torch.func.functional_call(Cell(), {}, a),
        "partial of a partial": functools.wraps(elman_step)(functools.partial(functools.partial(elman_step))),
        "method": Callable().__call__,
        "its code": FunctionType(elman_step.__code__, elman_step.__globals__),
        "loaded anew": anew.elman_step,
        "as forward": type("Forward", (torch.nn.Module,), {"forward": staticmethod(elman_step)})(),
        "as call": type("Called", (), {"__call__": staticmethod(elman_step)})(),
    }


class Cell(torch.nn.Module):
    def forward(self, x, h, W, U, b):
        return elman_step(x, h, W, U, b)


@pytest.mark.parametrize("cover", covers())
def test_the_librarys_piece_is_never_yours(lab, shown, record, cover):
    assert lab.check("1.1", covers()[cover]) is elman_step
    assert repr(shown[-1]).startswith("○ 1.1 Elman step · not attempted")
    assert "This is the library's own `elman_step`" in repr(shown[-1])
    assert lab.states["1.1"] == "untouched"
    assert not record.exists() or "1.1" not in json.loads(record.read_text(encoding="utf-8"))[LESSON].get(
        "exercises", {}
    )


def test_a_class_of_the_library_is_never_yours():
    [lora] = [e for e in applying_language_models.EXERCISES if e.id == "10.4"]

    class Mine(lora.reference):
        pass

    class Inside(torch.nn.Module):
        def __init__(self, *arguments):
            super().__init__()
            self.inner = lora.reference(*arguments)

        def forward(self, x):
            return self.inner(x)

    class Borrowed(torch.nn.Module):
        def __init__(self, *arguments):
            super().__init__()
            self.__dict__ |= vars(lora.reference(*arguments))

        forward = lora.reference.forward

    for cover in (lora.reference, Mine, functools.partial(Mine), Borrowed):
        assert grade(lora, cover).state == "library"
    for cover in (Inside, lambda *arguments: lora.reference(*arguments)):
        assert grade(lora, cover).state == "wrong"


@pytest.mark.parametrize(("answer", "mark"), [(no_tanh, "✗"), (untouched, "○"), (right, "✓")])
def test_a_check_cell_run_twice_changes_nothing(lab, shown, record, answer, mark):
    piece = lab.check("1.1", answer)
    first, state, kept = repr(shown[-1]), lab.states["1.1"], json.loads(record.read_text(encoding="utf-8"))
    for _ in range(2):
        assert lab.check("1.1", piece) is piece
    assert repr(shown[-1]).startswith(mark)
    assert repr(shown[-1]).splitlines()[0] == first.splitlines()[0]
    if mark == "✗":  # what was said of the answer stays, as what it is
        assert "then this one. Of your last answer it was said:" in repr(shown[-1]).splitlines()[1]
        assert repr(shown[-1]).splitlines()[2:] == first.splitlines()[1:]
    assert lab.states["1.1"] == state
    assert json.loads(record.read_text(encoding="utf-8")) == kept


@pytest.mark.parametrize(("answer", "mark"), [(no_tanh, "✗"), (untouched, "○"), (right, "✓")])
def test_a_set_up_cell_run_twice_takes_nothing_away(lab, shown, record, answer, mark):
    piece = lab.check("1.1", answer)
    lab.predict("speed", 3)
    lab.claim("It vanishes", 0.5, below=1, source="S1")
    lab.summary()
    summary, kept = shown[-1]._repr_html_(), json.loads(record.read_text(encoding="utf-8"))
    again = Lab(LESSON)
    assert again.check("1.1", piece) is piece
    assert repr(shown[-1]).startswith(f"{mark} 1.1")
    again.reveal("speed", 2)
    assert "you said <b>3</b>" in shown[-1]._repr_html_()
    again.summary()
    assert shown[-1]._repr_html_() == summary
    assert json.loads(record.read_text(encoding="utf-8")) == kept


def test_the_library_after_a_right_answer_is_not_yours(lab, shown):
    assert lab.check("1.1", right) is right
    assert lab.check("1.1", elman_step) is elman_step
    assert lab.states["1.1"] == "untouched"


def test_the_stubs_raise_below_an_answer_is_named():
    def half(x, h, W, U, b):
        h = x @ W.T + h @ U.T + b
        raise NotImplementedError

    def below(x, h, W, U, b):
        raise NotImplementedError
        return x

    def unsure(x, h, W, U, b):
        if x.dim() != 7:
            raise NotImplementedError

    def calls_a_stub(x, h, W, U, b):
        x = untouched(x, h, W, U, b)
        return x + h

    class Half(torch.nn.Module):
        def __init__(self, layer, rank, alpha):
            super().__init__()
            self.layer = layer
            raise NotImplementedError

    class Debug(torch.nn.Module):
        def __init__(self, layer, rank, alpha):
            raise NotImplementedError
            self.layer = layer

    class CallsAStub(torch.nn.Module):
        def __init__(self, layer, rank, alpha):
            self.layer = Debug(layer, rank, alpha)

    [lora] = [e for e in applying_language_models.EXERCISES if e.id == "10.4"]
    for exercise, answer, said in (
        (ELMAN, half, "take that line out"),
        (ELMAN, below, "take that line out"),
        (ELMAN, untouched, ""),
        (ELMAN, unsure, ""),
        (ELMAN, calls_a_stub, "It calls `untouched`, which raises NotImplementedError."),
        (ELMAN, functools.partial(calls_a_stub), "It calls `untouched`, which raises NotImplementedError."),
        (lora, Half, "take that line out"),
        (lora, Debug, ""),
        (lora, CallsAStub, "It calls `Debug`, which raises NotImplementedError."),
    ):
        verdict = grade(exercise, answer)
        assert verdict.state == "untouched"
        assert said in verdict.reason, answer
        assert bool(said) == bool(verdict.reason), answer
        heading = verdict_panel(exercise, verdict, "it").title
        assert heading.endswith("not judged" if said else "not attempted")


def test_expected_stands_beside_yours(lab, shown):
    lab.check("1.1", no_tanh)
    page = shown[-1]._repr_html_()
    assert page.index("expected<br><table") < page.index("yours<br><table")
    assert "expected<br>" not in repr(shown[-1])


def test_the_table_shows_where_they_differ():
    want = torch.zeros(3, 9, 12)
    got = want.clone()
    got[2, 8, 11] = 7.0
    page = verdict_panel(rnn_limits.elman, Verdict("wrong", 0, 1, "No.", expected=want, got=got), "f")._repr_html_()
    assert page.count("<b>7</b></td></tr></table>") == 1
    assert len(re.findall(r"<td [^>]*0\.00\)'>0</td>", page)) == 2 * 6 * 8 - 1


def test_expected_stands_beside_yours_where_a_property_fails():
    verdict = grade(positional_encoding.shift, lambda k, d, base=1e4: torch.eye(d))
    assert "M PE(p) must be PE(p + 3)" in verdict.reason
    assert torch.equal(verdict.expected, positional_encoding.shift.reference(3, 6))
    assert torch.equal(verdict.got, torch.eye(6))


def test_what_is_compared_is_named():
    [top_k] = [e for e in decoding_strategies.EXERCISES if e.id == "9.4"]
    verdict = grade(top_k, lambda logits, k: logits / 2)
    assert "expected, as probabilities<br>" in verdict_panel(top_k, verdict, "top_k")._repr_html_()


def test_a_wrong_answer_gets_no_count(lab, shown):
    """With the right shape and type alone, most checks pass: a count would say "nearly right"."""
    lab.check("1.1", lambda x, h, W, U, b: h)
    assert repr(shown[-1]).splitlines()[0] == "✗ 1.1 Elman step"


def test_what_is_printed_beyond_eight_lines_is_cut_with_a_mark():
    verdict = Verdict("wrong", 0, 1, "No.", printed="\n".join("abcdefghij"))
    lines = repr(verdict_panel(rnn_limits.elman, verdict, "f")).splitlines()
    assert lines[9:11] == ["  It printed: h", "  It printed: …"]


# --- equalities and checkpoints -------------------------------------------------------------------------------------


def test_same_is_a_quiet_line(lab, shown):
    lab.same("nn.LSTM", [torch.ones(2), {"h": torch.zeros(1)}], (torch.ones(2) + 1e-7, torch.zeros(1)))
    assert repr(shown[-1]) == "= nn.LSTM"
    assert "largest difference <b data-here>1e-07</b>" in shown[-1]._repr_html_()


def test_same_of_a_gpu_without_float64_and_the_cpu(lab, shown):
    lab.same("nn.LSTM", torch.ones(2).as_subclass(WithoutDouble), torch.ones(2))
    assert repr(shown[-1]) == "= nn.LSTM"


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (torch.ones(2), torch.ones(3), "the shapes are (2,) and (3,)"),
        (torch.ones(2), torch.zeros(2), "the largest difference is 1; expected at most 1e-05"),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan]), "the largest difference is nan"),
    ],
)
def test_what_is_not_the_same_is_an_error(lab, ours, theirs, said):
    with pytest.raises(NotTheSame, match=re.escape(f"Not nn.LSTM: {said}")):
        lab.same("nn.LSTM", ours, theirs)


def test_nothing_to_compare_is_an_error(lab):
    with pytest.raises(ValueError, match="There is nothing to compare"):
        lab.same("nn.LSTM", [], [])


def test_a_checkpoint_lies_beside_the_progress(lab, record):
    assert lab.checkpoint("GPT") == record.with_name("01_rnn_limits_GPT_cpu_0.checkpoint")


def test_where_nothing_can_be_written_there_is_no_checkpoint(lab, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert lab.checkpoint("GPT") is None


def test_the_summary_removes_the_checkpoints_of_this_lesson_alone(lab, record):
    others = [
        record.with_name(f"{name}.checkpoint") for name in ("01_rnn_limits_GPT_gpu_0", "06_language_models_cpu_0")
    ]
    for file in (lab.checkpoint("GPT"), lab.checkpoint("LSTM"), *others):
        file.write_bytes(b"weights")
    lab.summary()
    assert sorted(record.parent.glob("*.checkpoint")) == sorted(others)


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
    assert "<div>measured" in shown[-1]._repr_html_()
    assert "  measured" not in repr(shown[-1])
    assert ("not a number" in repr(shown[-1])) == (isinstance(value, float) and math.isnan(value))


def test_beside_what_is_measured_stands_what_the_ledger_says(lab, shown):
    lab._ranges["A sentence"] = "0.7 … 0.8"
    lab.claim("A sentence", 0.75, above=0.5, source="S1")
    assert "<b data-here>0.75 (five seeds: 0.7 … 0.8)</b>" in shown[-1]._repr_html_()
    lab.summary()
    assert "<b data-here>0.75 (five seeds: 0.7 … 0.8)</b>" in shown[-1]._repr_html_()


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
    assert shown[-1].title == f"Lesson {LESSON}: 1 of {len(lab.exercises)} exercises solved, 2 claims measured"
    assert "✓ 1.1 Elman step" in repr(shown[-1])
    assert "✗ Fails (below 2, S1)" in repr(shown[-1])
    assert json.loads(record.read_text(encoding="utf-8"))[LESSON]["claims"] == {"Holds": "1", "Fails": "3"}
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
    return json.loads(record.read_text(encoding="utf-8"))[LESSON]["exercises"][id]


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
    assert json.loads(record.read_text(encoding="utf-8"))[LESSON] == {f"writer {i}": 10 for i in range(4)}


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
    record.write_text(damage, encoding="utf-8")
    lab = Lab(LESSON)
    assert "was damaged" in repr(shown[0])
    [aside] = record.parent.glob("progress.damaged-*.json")
    assert aside.read_text(encoding="utf-8") == damage
    lab.check("1.1", right)
    assert entry(record)["state"] == "passed"


def test_record_that_is_not_text_is_set_aside(shown, record):
    record.write_bytes(b"\xff\xfe\x00bad")
    Lab(LESSON)
    [aside] = record.parent.glob("progress.damaged-*.json")
    assert aside.read_bytes() == b"\xff\xfe\x00bad"


def test_folder_that_is_not_there_costs_the_record_only(shown, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file where a folder should be", encoding="utf-8")
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
    before = record.read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        assert lab.check("1.1", right) is right
    assert "Permission denied" in shown[-1]._repr_html_()
    assert record.read_text(encoding="utf-8") == before
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
    (record / "kept").write_text("here", encoding="utf-8")
    lab = Lab(LESSON)
    assert lab.check("1.1", right) is right
    assert (record / "kept").read_text(encoding="utf-8") == "here"


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
    (record.parent / ".progress.json.abc123").write_text('{"half', encoding="utf-8")
    lab.check("1.1", right)
    assert entry(record)["state"] == "passed"


def test_lab_of_an_exercise_made_for_tests(lab):
    """A short limit: the notebook goes on with the library's piece."""

    def forever(x, h, W, U, b):
        while True:
            pass

    lab.exercises["1.1"] = dataclasses.replace(ELMAN, seconds=0.2)
    assert lab.check("1.1", forever) is elman_step
