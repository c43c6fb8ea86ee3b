"""Running a lesson from top to bottom, as a student's *Run All* does, and storing what it shows."""

import base64
import os
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import get_kernel_spec
from nbclient import NotebookClient
from nbclient.output_widget import OutputWidget
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[2] / "notebooks"
PICTURES = FOLDER.parent / "pictures"


def lessons() -> list[Path]:
    """The notebooks, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))


def lesson(name: str) -> Path:
    """The notebook whose name starts with ``name``, such as '01' or '01_rnn_limits'."""
    found = [path for path in lessons() if path.stem.startswith(name)]
    if len(found) != 1:
        raise ValueError(
            f"Expected the start of one lesson's name; {name!r} fits {len(found)} of {[p.stem for p in lessons()]}."
        )
    return found[0]


class Client(NotebookClient):
    """nbclient, with what an Output widget shows below its cell instead of inside the widget.

    To put it inside, nbclient would send a message on the channel on which it waits for the cell's reply, and now and
    then it would miss the reply and wait for ever.
    """

    def register_output_hook(self, msg_id: str, hook: OutputWidget) -> None:
        pass

    def remove_output_hook(self, msg_id: str, hook: OutputWidget) -> None:
        pass


def execute(notebook: NotebookNode, folder: Path = FOLDER, **environment: str) -> NotebookNode:
    """Run all cells in a new kernel, with ``environment`` set; the outputs are stored in the notebook itself."""
    client = Client(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.extra_arguments = ["--log-level=ERROR"]  # of the kernel itself, not of the lesson
    client.execute(env=os.environ | environment)
    spec = get_kernel_spec("python3")  # JupyterLab writes this on opening: other words would mark a lesson as changed
    notebook.metadata.kernelspec = {"name": "python3", "display_name": spec.display_name, "language": spec.language}
    notebook.metadata.pop("widgets", None)  # the state of widgets: GitHub refuses to show notebooks that carry it
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]  # a finished progress bar
    return notebook


def store(path: Path) -> float:
    """Run the lesson and write it back with its outputs, at once or not at all; returns the seconds it took.

    The figure of the cell tagged ``picture`` becomes the lesson's picture in the README. No progress is recorded.
    """
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as elsewhere:
        record = os.path.join(elsewhere, "progress.json")
        notebook = execute(nbformat.read(path, as_version=4), COURSE_PROGRESS=record)
    temporary = path.with_suffix(".tmp")
    nbformat.write(notebook, temporary)
    temporary.replace(path)
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{path.stem}.png").write_bytes(picture(notebook))
    return time.perf_counter() - start


def picture(notebook: NotebookNode) -> bytes:
    """The PNG that the cell tagged ``picture`` shows."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []) if "picture" in cell.metadata.get("tags", []) else []:
            if "image/png" in output.get("data", {}):
                return base64.b64decode(output["data"]["image/png"])
    raise ValueError("One cell of each lesson must be tagged 'picture' and show a figure.")
