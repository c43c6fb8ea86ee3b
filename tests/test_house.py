"""The files that describe the project agree with each other and with what is there."""

import ast
import os
import re
import shutil
import subprocess
import textwrap
import tomllib
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from course_lib import colab, training
from course_lib.lab import ladder
from course_lib.lab import run as notebooks
from course_lib.lab.grading import Exercise, grade

ROOT = Path(__file__).parents[1]
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


def test_every_pin_installs_on_every_python_that_we_promise():
    """By each package's own word, where the pinned version is the one installed, as `make test` has it."""
    promised = SpecifierSet(PROJECT["requires-python"])
    pythons = [v for minor in range(9, 15) for patch in range(10) if promised.contains(v := f"3.{minor}.{patch}")]
    assert pythons[0] == "3.11.0"
    elsewhere = []
    for name, version in pins().items():
        try:
            package = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue  # not needed on this system
        if Version(package["Version"]).public != str(version):
            elsewhere.append(f"{name} {package['Version']}")
            continue
        own = SpecifierSet(package["Requires-Python"] or "")
        assert not [v for v in pythons if not own.contains(v)], f"{name} {version} needs Python {own}"
    if elsewhere:
        pytest.skip(f"Not the pinned versions: {', '.join(elsewhere)}.")


@pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="make is for Linux and macOS")
def test_make_says_what_it_does_before_it_is_silent_for_minutes():
    plan = ["make", "--dry-run", "--always-make", "--no-print-directory", ".venv/installed"]
    lines = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    said = next(i for i, line in enumerate(lines) if re.match(r'echo "Setting .* GB .* minutes', line))
    assert said < next(i for i, line in enumerate(lines) if "pip install" in line)


def test_conda_has_the_same_packages_and_bounds():
    lines = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    by_pip = next(line for line in lines if isinstance(line, dict))["pip"]
    assert by_pip[-1] == "--editable ."
    listed = {*(line for line in lines if isinstance(line, str) and line != "pip"), *by_pip[:-1]}
    wanted = {f"{CONDA.get(name, name)}{requirement.specifier}" for name, requirement in required().items()}
    assert listed == wanted | {f"python{PROJECT['requires-python']}"}


def test_the_workflow_for_windows_sets_up_by_the_readmes_lines():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    by_hand = re.findall(r"^    \.venv\\Scripts\\(python -m .+)$", readme, flags=re.M)
    assert len(by_hand) == 2
    workflow = yaml.safe_load((ROOT / ".github/workflows/systems.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for step in workflow["jobs"]["test"]["steps"]]
    assert all(f"${{{{ matrix.bin }}}}{line}" in steps for line in by_hand)


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_name_files_and_targets_that_exist(path):
    text = path.read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]
    for pattern in re.findall(r"hashFiles\('([^']+)'\)", text):
        assert list(ROOT.glob(pattern)), pattern
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert set(re.findall(r"run: make (\w+)", text)) <= set(targets)
    for folder in re.findall(r"\b(?:tests|notebooks|benchmarks)/\w+(?:\.py)?|\bnotebooks\b", text):
        assert (ROOT / folder).exists(), folder


def test_scripts_and_pages_that_are_named_are_there():
    files = [ROOT / "Makefile", *(ROOT / "benchmarks").glob("*.py")]
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("data/*.md")]
    texts = {path: path.read_text(encoding="utf-8") for path in files + pages}
    [loop] = re.findall(r"for name in (.+); do \S+ benchmarks/\$\$name\.py", texts[ROOT / "Makefile"])
    named = {ROOT / f"benchmarks/{name}.py" for name in loop.split()}
    for path, text in texts.items():
        named |= {ROOT / name for name in re.findall(r"\b(?:benchmarks|course_lib|data|tests)/[\w/]+\.py\b", text)}
        if path in pages:
            named |= {path.parent / link for link in re.findall(r"\]\((?!http|#)([^)#]+)", text)}
    assert not [path for path in named if not path.exists()]


def code(*folders: str) -> dict[Path, ast.Module]:
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}


def test_text_is_read_and_written_as_utf8():
    """Windows would take its code page."""
    for path, tree in code("course_lib", "data", "benchmarks", "tests").items():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if getattr(call.func, "attr", getattr(call.func, "id", "")) in (
                "open",
                "fdopen",
                "read_text",
                "write_text",
            ):
                given = {keyword.arg for keyword in call.keywords}
                binary = any(isinstance(a, ast.Constant) and "b" in str(a.value) for a in call.args)
                elsewhere = ast.unparse(call.func) in ("Image.open", "archive.open", "notebook.open")
                assert "encoding" in given or binary or elsewhere, f"{path.name}, line {call.lineno}"


def test_nothing_is_for_posix_alone():
    """The library, and the scripts that made the corpora and the measurements; a test may be skipped on Windows."""
    modules = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    functions = re.compile(
        r"(os\.(fork\w*|kill\w*|get[eg]?uid|nice|mkfifo|sched_\w+|symlink|uname|wait\w*)"
        r"|signal\.(alarm|setitimer|SIGALRM|SIGKILL|SIGHUP)|.+\.(symlink_to|hardlink_to)|time\.tzset)"
    )
    for path, tree in code("course_lib", "data", "benchmarks").items():
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Attribute):
                names = [f"{getattr(node.value, 'id', '?')}.{node.attr}"]
            found = [name for name in names if name in modules or functions.fullmatch(name)]
            assert not found, f"{path.name}, line {node.lineno}: {found[0]}"
            absolute = isinstance(node, ast.Constant) and re.match(r"/(tmp|dev|proc|home)\b", str(node.value))
            assert not absolute, f"{path.name}, line {node.lineno}: {node.value}"


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


def test_the_exercise_in_contributing_is_one():
    [text] = re.findall(r"```python\n(.+?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.S)
    names = vars(ladder) | {"Exercise": Exercise, "inverse_sqrt": training.inverse_sqrt}
    exec(textwrap.dedent(text), names)
    exercise = names["warm_up"]
    assert grade(exercise, training.inverse_sqrt).state == "library"
    assert grade(exercise, lambda step, steps, warmup=0.1: (step + 1) / round(warmup * steps)).reason.endswith("1.")
    for slip, sentence in exercise.checks.slips:
        assert sentence in grade(exercise, slip.function).reason


def test_ci_calls_the_test_command_of_the_readme():
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_lists_the_lessons_that_are_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stems = {path.stem for path in notebooks.lessons()}
    assert set(re.findall(r"notebooks/(\w+)\.ipynb", readme)) == stems
    assert set(re.findall(r'<img src="pictures/(\w+)\.png" width="330" alt="[^"]{30,}">', readme)) == stems


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
