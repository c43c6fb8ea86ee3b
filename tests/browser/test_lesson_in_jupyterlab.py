"""What the course is for: a student opens a lesson, runs all cells, answers wrongly, then rightly, and is helped."""

import platform

import nbformat
import pytest
from driving import wait

from course_lib.lab import run as notebooks

pytestmark = pytest.mark.browser


@pytest.fixture
def lesson(notebook):
    """Lesson 01 in JupyterLab, all cells run under the smoke profile; gives (notebook, index of the check of 1.1)."""
    path = notebook.copy(notebooks.lesson("01"))
    copy = nbformat.read(path, as_version=4)
    copy.cells[1].source = 'import os\nos.environ["COURSE_PROFILE"] = "smoke"\n' + copy.cells[1].source
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None  # so that what is seen was run here
    nbformat.write(copy, path)
    check = next(i for i, cell in enumerate(copy.cells) if 'lab.check("1.1"' in cell.source)
    notebook.open(path).run_all()
    return notebook, check


def test_a_student_is_helped(lesson):
    notebook, check = lesson
    last = notebook.js("return panel.content.widgets.length") - 1
    for index, words in ((check, "not attempted"), (last, "exercises solved")):
        notebook.show(index)  # JupyterLab renders what is in view
        wait(lambda: words in notebook.output(index), 20, words)  # noqa: B023
    notebook.show(check)

    notebook.set_source(check - 1, "def elman_step(x, h, W, U, b):\n    return torch.tanh(x @ W.T + h @ U + b)")
    notebook.run(check - 1)
    wrong = notebook.run(check)
    assert "U is used without its transpose" in wrong
    assert 'lab.hint("1.1")' in wrong

    notebook.set_source(check - 1, "def elman_step(x, h, W, U, b):\n    return torch.tanh(x @ W.T + h @ U.T + b)")
    notebook.run(check - 1)
    assert "Right. The lesson goes on with yours." in notebook.run(check)
    assert (notebook.lab.folder / "progress.json").exists()
    assert [error for error in notebook.errors() if "colab-badge" not in error] == []  # the badge's picture is remote


def test_a_lesson_that_is_only_opened_is_not_changed(notebook):
    path = notebook.copy(notebooks.lesson("02"))
    copy = nbformat.read(path, as_version=4)
    copy.metadata.language_info.version = platform.python_version()  # the stored one is of another Python, maybe
    nbformat.write(copy, path)
    notebook.open(path)
    changed = """const kernel = panel.sessionContext.session.kernel;  // JupyterLab writes when it knows these two
                 return Promise.all([kernel.info, kernel.spec]).then(() => new Promise(done => setTimeout(done)))
                        .then(() => panel.context.model.dirty)"""
    assert not notebook.js(changed)


def test_short_trainings_leave_no_errors_in_the_page(notebook):
    """A bar that is gone as soon as it is there: with widgets, JupyterLab fails now and then."""
    cell = "from course_lib.progress_bar import progress_bar\n"
    cell += "for _ in range(20):\n    with progress_bar(1):\n        pass"
    notebook.open(notebook.write(*[cell] * 20)).run_all()
    for index in (19, 0, 10):
        notebook.show(index)
    assert notebook.errors() == []
