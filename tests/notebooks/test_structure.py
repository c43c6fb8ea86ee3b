"""Every lesson is built alike, and what is stored in it is clean."""

import json
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from claims import stated as claims_stated
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import get_kernel_dict

from course_lib.lab import Lab, ledger
from course_lib.lab import run as notebooks

ROOT = Path(__file__).parents[2]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
BOOTSTRAP = f"""if "google.colab" in sys.modules:  # the badge opens this file alone: fetch the rest of the course
    !test -d {REPOSITORY.rpartition("/")[2]} || git clone -q --depth 1 {REPOSITORY}
    sys.path.insert(0, "{REPOSITORY.rpartition("/")[2]}")
    from course_lib import colab

    colab.install()  # what is missing, and nothing else
"""
LESSONS = pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(path: Path):
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def exercises(path: Path, monkeypatch, tmp_path) -> list[str]:
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return list(Lab(path.stem).exercises)


@LESSONS
def test_jupyterlab_has_nothing_to_add_when_it_opens_the_lesson(path):
    """Else it marks a lesson as changed before a letter is typed. (Another version of Python does that, too.)"""
    metadata, spec = read(path).metadata, get_kernel_dict()
    kernel = {"name": "python3", "display_name": spec["display_name"], "language": spec["language"]}
    here = IPythonKernel.language_info
    assert metadata == {"kernelspec": kernel, "language_info": here | {"version": metadata.language_info.version}}


def test_there_are_lessons():
    assert notebooks.lessons()


@LESSONS
def test_anatomy(path):
    cells = read(path).cells
    title, setup = cells[0].source, cells[1].source
    number = path.stem[:2]
    assert title.startswith(f"# {number} · ")
    assert "?**" in title, "the question, in bold"
    github = REPOSITORY.removeprefix("https://github.com/")
    assert f"https://colab.research.google.com/github/{github}/blob/main/notebooks/{path.name}" in title
    for word in ("You will be able to", "Time", "Before this"):
        assert f"**{word}**" in title
    assert f'lab = Lab("{path.stem}")' in setup
    assert BOOTSTRAP in setup, "what Colab needs, letter by letter"
    headings = re.findall(r"^## (.+)$", "\n".join(c.source for c in cells if c.cell_type == "markdown"), flags=re.M)
    assert headings[-1] == "Summary"
    assert "Go further" in headings
    assert cells[-1].source == "lab.summary()"
    assert any("**Predict first.**" in cell.source for cell in cells)


@LESSONS
def test_small_enough_to_open(path):
    assert path.stat().st_size < 3_000_000


@LESSONS
def test_no_magics_beyond_the_setup_cell(path):
    for cell in code_cells(path)[1:]:
        assert not re.search(r"^\s*[!%]", cell.source, flags=re.M), cell.source


@LESSONS
def test_every_exercise_has_its_three_cells(path, monkeypatch, tmp_path):
    cells = read(path).cells
    for id in exercises(path, monkeypatch, tmp_path):
        place = next(i for i, c in enumerate(cells) if c.cell_type == "code" and f'lab.check("{id}"' in c.source)
        prose, stub, check = cells[place - 2 : place + 1]
        assert re.search(rf"### Exercise {re.escape(id)} · .+ · (easy|medium|hard), \d+ minutes", prose.source)
        assert "*Worked example*" in prose.source
        assert "raise NotImplementedError" in stub.source
        name = re.search(r"^(?:def|class) (\w+)\(", stub.source, flags=re.M)[1]
        assert check.source == f'{name} = lab.check("{id}", {name})'
        answer, grade = stub.metadata.nbgrader, check.metadata.nbgrader
        assert answer.solution
        assert not answer.grade
        assert not answer.locked
        assert grade.grade
        assert grade.locked
        assert grade.points > 0
        assert answer.grade_id != grade.grade_id


@LESSONS
def test_outputs_are_stored_and_clean(path):
    notebook = read(path)
    assert "widgets" not in notebook.metadata
    assert [cell.execution_count for cell in code_cells(path)] == list(range(1, len(code_cells(path)) + 1))
    for cell in code_cells(path):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.get("text")
            assert output.get("data") != {}
            text = json.dumps(output)
            assert "Warning" not in text
            for trace in ("/work", "/root", "/home", "/tmp"):
                assert f'"{trace}' not in text.replace(" ", '"'), f"a path of this machine in {text[:300]}"


@LESSONS
def test_every_figure_has_alt_text(path):
    figures = [o for cell in code_cells(path) for o in cell.outputs if "image/png" in o.get("data", {})]
    assert figures
    for output in figures:
        alt = output.metadata["image/png"]["alt"]
        assert len(alt) > 30
        assert output.data["text/plain"] == f"Figure: {alt}"


@LESSONS
def test_every_claim_held_names_its_source_and_kept_its_bound_on_five_seeds(path):
    """The ledger is taken anew by `python benchmarks/claims.py LESSON --store`."""
    texts = [
        o.data["text/plain"] for cell in code_cells(path) for o in cell.outputs if "text/plain" in o.get("data", {})
    ]
    shown = [text for text in texts if text[1:].startswith(" Claim: ")]
    assert shown
    assert all(text.startswith("✓ ") for text in shown), shown
    entries = ledger.entries()[path.stem]
    claims = claims_stated(read(path))
    assert len(claims) == len(shown)
    assert {claim: entry[:2] for claim, entry in entries.items()} == claims
    for claim, (bound, source, *values) in entries.items():
        assert re.search(r"S\d|^ours$", source), claim
        assert len(values) == 5, claim
        for word, limit in re.findall(r"(above|below) (\S+)", bound):
            for value in map(float, values):
                inside = value - float(limit) if word == "above" else float(limit) - value
                assert inside >= -0.005 * abs(value), claim  # the ledger has three digits
