"""A progress bar that is gone when the work is done: no text in logs, nothing in the stored output of a notebook."""

import contextlib
import html
import io
import sys
from collections.abc import Iterator

from tqdm import tqdm


class NotebookBar(tqdm):
    """tqdm drawn with the page's own ``<progress>``.

    Not with a widget: one that is closed before JupyterLab has built it leaves errors in the browser, and short
    trainings do close that soon.
    """

    def __init__(self, **options):
        from IPython.display import display

        self.place = display({}, raw=True, display_id=True)
        super().__init__(file=io.StringIO(), **options)  # the file takes what tqdm would write to a terminal

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        text = self.format_meter(**self.format_dict | {"bar_format": self.bar_format.replace("{bar}", "")})
        bar = f'<progress value="{self.n}" max="{self.total}"></progress>'
        self.place.update({"text/html": f"{bar} {html.escape(text)}"}, raw=True)

    def close(self) -> None:
        super().close()
        self.place.update({}, raw=True)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@contextlib.contextmanager
def progress_bar(total: int, done: int = 0, show: bool = True, title: str = "", unit: str = "") -> Iterator[tqdm]:
    """``with progress_bar(steps) as bar: … bar.update()``; shown in a notebook and on a terminal.

    With a ``unit``, such as B, large numbers are written with k and M.
    """
    layout = "{desc}{percentage:3.0f}% {bar} {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}{postfix}]"
    options = {"total": total, "initial": done, "leave": False, "bar_format": layout}
    options |= {"desc": title, "unit": unit, "unit_scale": bool(unit)}
    hidden = None if show else True  # None: shown on a terminal only
    with NotebookBar(**options) if show and in_notebook() else tqdm(**options, disable=hidden) as bar:
        yield bar
