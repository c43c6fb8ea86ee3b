"""The files that describe the project agree with each other and with what is there."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from course_lib import colab, notebooks

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = {
    "torch": "pytorch",
    "matplotlib": "matplotlib-base",
    "huggingface-hub": "huggingface_hub",
    "jupyter-client": "jupyter_client",
}


def required() -> dict[str, Requirement]:
    extras = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    return {r.name: r for r in map(Requirement, PROJECT["dependencies"] + extras)}


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(len(r.specifier) == 1 and str(r.specifier).startswith("==") for r in found)
    return {r.name.lower().replace("_", "-"): Version(str(r.specifier)[2:]) for r in found}


def test_pyproject_has_lower_bounds_only():
    for requirement in required().values():
        assert re.fullmatch(r">=[\d.]+", str(requirement.specifier)), requirement


def test_every_requirement_is_pinned_within_its_bound():
    pinned = pins()
    assert pinned["torch"] == Version("2.13.0")
    for name, requirement in required().items():
        assert requirement.specifier.contains(pinned[name.lower()]), f"{requirement} against {pinned[name.lower()]}"


def test_conda_has_the_same_packages_and_bounds():
    lines = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    by_pip = next(line for line in lines if isinstance(line, dict))["pip"]
    assert by_pip[-1] == "--editable ."
    listed = {*(line for line in lines if isinstance(line, str) and line != "pip"), *by_pip[:-1]}
    wanted = {f"{CONDA.get(name, name)}{requirement.specifier}" for name, requirement in required().items()}
    assert listed == wanted | {f"python{PROJECT['requires-python']}"}


def test_what_lessons_and_library_import_is_declared():
    """Packages that only arrive through others may be gone next year; on Colab, those of the extras are not there."""
    provided = {
        m: {name.lower().replace("_", "-") for name in names} for m, names in metadata.packages_distributions().items()
    }
    declared = {Requirement(line).name.lower() for line in PROJECT["dependencies"]}
    texts = {file: file.read_text(encoding="utf-8") for file in ROOT.glob("course_lib/**/*.py")}
    for path in notebooks.lessons():
        texts[path] = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code")
    for file, text in texts.items():
        for module in re.findall(r"^\s*(?:from|import) (\w+)", text, flags=re.M):
            if module in provided and module != "course_lib":
                assert provided[module] & declared, f"{file.name} imports {module} of {provided[module]}"


def test_ci_calls_the_test_command_of_the_readme():
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_lists_the_lessons_that_are_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stems = {path.stem for path in notebooks.lessons()}
    assert set(re.findall(r"notebooks/(\w+)\.ipynb", readme)) == stems
    assert set(re.findall(r'<img src="pictures/(\w+)\.png" width="330" alt="[^"]{30,}">', readme)) == stems
    for link in re.findall(r"\]\((?!http|#)([^)#]+)", readme):
        assert (ROOT / link).exists(), f"README links to {link}, which is not there"


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_the_pictures_are_those_that_the_lessons_show(path):
    shown = notebooks.picture(nbformat.read(path, as_version=4))
    assert (notebooks.PICTURES / f"{path.stem}.png").read_bytes() == shown, "run: python -m course_lib run"


def test_colab_keeps_what_it_has(monkeypatch):
    """With Colab's packages, only those are installed of which it has no version; never torch, numpy, IPython."""
    lacks = {"bertviz", "colorama", "faiss-cpu", "mpld3", "portalocker", "sacrebleu", "XStatic-jQuery"}
    monkeypatch.setattr(colab, "_installed", lambda name: name not in lacks)
    assert {Requirement(line).name for line in colab.missing()} == lacks
    ran = []
    monkeypatch.setattr(colab.subprocess, "run", lambda command, **_: ran.append(command) or Done())
    colab.install()
    assert "--no-deps" in ran[0]
    monkeypatch.setattr(colab, "_installed", lambda name: True)
    colab.install()
    assert len(ran) == 1  # nothing missing, nothing run


def test_colab_says_what_failed(monkeypatch):
    monkeypatch.setattr(colab, "_installed", lambda name: name != "bertviz")
    monkeypatch.setattr(colab.subprocess, "run", lambda *_, **__: Done(1, "a\nERROR: no network\n"))
    with pytest.raises(RuntimeError, match=r"pip could not install bertviz>=1.4: ERROR: no network"):
        colab.install()


class Done:
    def __init__(self, returncode: int = 0, stderr: str = ""):
        self.returncode, self.stderr = returncode, stderr
