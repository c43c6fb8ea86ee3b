"""Driving a notebook in JupyterLab as a student does; the fixtures are in ``conftest.py``."""

import contextlib
import json
import secrets
import shutil
import socket
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import nbformat


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@dataclass
class JupyterLab:
    url: str
    token: str
    folder: Path


def answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(url, timeout=2).status == 200
    return False


def wait(condition, seconds: float, what: str):
    """Wait until ``condition()`` is true and return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds} s for {what}")


class Notebook:
    """One notebook, open in JupyterLab; cells are counted from 0."""

    def __init__(self, browser, jupyterlab: JupyterLab):
        self.browser, self.lab = browser, jupyterlab
        self.requests: list[str] = []
        self.console: list[str] = []

    def write(self, *cells: str, name: str | None = None) -> Path:
        """A new notebook of code cells in the served folder."""
        path = self.lab.folder / (name or f"{secrets.token_hex(4)}.ipynb")
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        cells = [nbformat.v4.new_code_cell(source) for source in cells]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
        return path

    def copy(self, path: Path) -> Path:
        """A copy of a notebook in the served folder: autosave never touches the original."""
        return Path(shutil.copy(path, self.lab.folder / f"{secrets.token_hex(4)}.ipynb"))

    def open(self, path: Path, seconds: float = 60) -> "Notebook":
        """Open a notebook of the served folder and wait for its kernel."""
        self.log()  # forget what earlier pages did
        self.requests, self.console = [], []
        self.browser.get(f"{self.lab.url}/lab/tree/{path.name}?reset&token={self.lab.token}")
        ready = "return !!window.jupyterapp?.shell?.currentWidget?.context?.isReady"
        wait(lambda: self.browser.execute_script(ready), seconds, "JupyterLab to open the notebook")
        self.wait_idle(seconds)
        return self

    def js(self, body: str, *arguments):
        """Run JavaScript in the page; ``panel`` and ``cell(i)`` are at hand."""
        prelude = "const panel = jupyterapp.shell.currentWidget, cell = i => panel.content.widgets[i];"
        return self.browser.execute_script(prelude + body, *arguments)

    def command(self, name: str) -> None:
        """Start one of JupyterLab's commands without waiting for it."""
        self.js("jupyterapp.commands.execute(arguments[0]); return 0", name)

    def wait_idle(self, seconds: float = 120) -> None:
        """Wait until the kernel is idle, twice in a row.

        The session must be ready, too: a kernel may be idle before its page is, and what is run then is lost.
        """
        idle = """const context = panel.sessionContext, kernel = context.session?.kernel;
                  return context.isReady && !context.pendingInput
                         && kernel?.connectionStatus === 'connected' && kernel.status === 'idle'"""
        wait(lambda: self.js(idle) and (time.sleep(0.3) or self.js(idle)), seconds, "the kernel to be idle")

    def run_all(self, seconds: float = 120) -> "Notebook":
        """Run → Run All Cells, and wait until every code cell has its number and the kernel is idle."""
        self.command("notebook:run-all-cells")
        done = """return panel.content.widgets.every(c => c.model.type !== 'code' || !c.model.sharedModel.source.trim()
                  || c.model.executionCount !== null && c.model.executionState !== 'running')"""
        try:
            wait(lambda: self.js(done), seconds, "all cells to run")
        except TimeoutError as error:
            kernel = self.js("const k = panel.sessionContext.session?.kernel; return [k?.status, k?.connectionStatus]")
            cells = self.js("return panel.content.widgets.map(c => [c.model.executionCount, c.model.executionState])")
            raise TimeoutError(f"{error}; the kernel: {kernel}; the cells: {cells}") from None
        self.wait_idle(seconds)
        return self

    def set_source(self, index: int, source: str) -> None:
        """Replace a cell's text."""
        self.js("cell(arguments[0]).model.sharedModel.setSource(arguments[1])", index, source)

    def run(self, index: int, seconds: float = 120) -> str:
        """Run one cell; returns the text of its output."""
        self.js("panel.content.activeCellIndex = arguments[0]; panel.content.deselectAll()", index)
        before = self.js("return cell(arguments[0]).model.executionCount", index)
        self.command("notebook:run-cell")
        changed = (
            "const c = cell(arguments[0]).model; return c.executionCount !== null && c.executionCount !== arguments[1]"
        )
        wait(lambda: self.js(changed, index, before), seconds, f"cell {index} to run")
        self.wait_idle(seconds)
        return self.output(index)

    def show(self, index: int):
        """Scroll to a cell; returns the element of its outputs."""
        self.js("panel.content.activeCellIndex = arguments[0]", index)
        self.js("return panel.content.scrollToItem(arguments[0], 'start')", index)
        return self.js("return cell(arguments[0]).outputArea.node", index)

    def output(self, index: int) -> str:
        """What a reader sees under a cell, as text."""
        return self.js("return cell(arguments[0]).outputArea.node.innerText", index)

    def find(self, index: int, selector: str) -> list:
        """Elements in a cell's output, by CSS."""
        return self.js("return [...cell(arguments[0]).outputArea.node.querySelectorAll(arguments[1])]", index, selector)

    def log(self) -> None:
        """Read the browser's logs into ``requests`` (URLs) and ``console`` (errors)."""
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        self.console += [e["message"] for e in self.browser.get_log("browser") if e["level"] == "SEVERE"]

    def requests_elsewhere(self) -> list[str]:
        """What the page asked of any other machine."""
        self.log()
        return [url for url in self.requests if not url.startswith((self.lab.url, "data:", "blob:", "about:"))]

    def errors(self) -> list[str]:
        """The console's errors, without missing files that JupyterLab itself asks for."""
        self.log()
        return [message for message in self.console if "404" not in message]

    def close(self) -> None:
        """Shut the kernel down and leave the page without a question."""
        with contextlib.suppress(Exception):
            self.js("panel.context.model.dirty = false; return panel.sessionContext.shutdown()")
            self.browser.get("about:blank")
