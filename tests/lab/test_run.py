"""Running a lesson and storing what it shows."""

import base64

import nbformat
import pytest
from ipykernel.kernelspec import get_kernel_dict
from nbclient.exceptions import CellExecutionError

from course_lib import cli
from course_lib.lab import run as notebooks

PNG = base64.b64encode(b"a picture").decode()
SHOW = f"from IPython.display import display\ndisplay({{'image/png': '{PNG}', 'text/plain': 'Figure: x'}}, raw=True)"


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """Writes a lesson of the given cells into a folder of its own; gives its path."""
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path)
    monkeypatch.setattr(notebooks, "PICTURES", tmp_path / "pictures")

    def write(*sources: str, name: str = "01_small"):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells[-1].metadata["tags"] = ["picture"]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
        return path

    return write


def test_outputs_and_picture_are_stored_and_progress_is_not_touched(lesson, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "mine.json"))
    path = lesson(
        "import os\nprint(os.environ['COURSE_PROGRESS'] != os.path.abspath('mine.json'))",
        "from IPython.display import display\ndisplay({}, raw=True)",
        SHOW,
    )
    assert cli.main(["run", "01"]) == 0
    assert "✓ 01_small" in capsys.readouterr().out
    stored = nbformat.read(path, as_version=4)
    assert stored.cells[0].outputs[0].text == "True\n"
    assert stored.cells[1].outputs == []  # what a finished progress bar leaves
    assert all("execution" not in cell.metadata for cell in stored.cells)
    assert stored.metadata.kernelspec.display_name == get_kernel_dict()["display_name"]  # not the "Python 3" of before
    assert (tmp_path / "pictures" / "01_small.png").read_bytes() == b"a picture"


def test_a_failing_lesson_is_left_as_it_was(lesson, capsys):
    path = lesson("print(1)", "raise KeyError('no')")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError):
        notebooks.store(path)
    assert cli.main(["run", "01"]) == 1
    assert "KeyError" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_lessons_by_the_start_of_their_names(lesson):
    first, second = lesson(SHOW), lesson(SHOW, name="02_other")
    assert notebooks.lessons() == [first, second]
    assert notebooks.lesson("02") == second
    for name in ("0", "03"):
        with pytest.raises(ValueError, match="Expected the start of one lesson's name"):
            notebooks.lesson(name)


def test_a_lesson_without_a_picture_is_refused(lesson):
    with pytest.raises(ValueError, match="tagged 'picture'"):
        notebooks.picture(nbformat.read(lesson("1"), as_version=4))


def test_what_an_output_widget_shows_stands_below_its_cell():
    """nbclient's own way, into the widget, now and then loses the reply of a cell and waits for ever."""
    cell = "import ipywidgets\nout = ipywidgets.Output()\nwith out:\n    print('seen')\nout"
    notebook = notebooks.execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)]))
    assert [output.text for output in notebook.cells[0].outputs if output.output_type == "stream"] == ["seen\n"]
    assert "widgets" not in notebook.metadata
