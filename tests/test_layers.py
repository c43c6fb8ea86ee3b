"""The house keeps its order: the map in course_lib/__init__.py says which room comes after which."""

import ast
import graphlib
import re
import sys
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
LIBRARY = TESTS.parent / "course_lib"
ROOMS = """
runtime → progress_bar → tokenizers → data → models → fast → pretrained → training → decoding → measure → viz → lab →
lessons → exercises → colab → cli → __main__
""".replace("→", "").split()
PRIVATE = re.compile(r"torch\.(ops|_\w+)\.|maybe_clear_saved_tensors")
ALSO_TWICE = {  # a public name that means the same kind of thing in two rooms, and why it may
    "BUDGETS": "each lesson has its own table, which `Lab` reads",
    "load": "data.load reads a corpus, tokenizers.load a tokenizer: each is called by its room's name",
    "sample": "lesson 09 builds decoding.pieces.sample; decoding.sample is the same with a model that remembers",
    "walk": "lesson 09 builds decoding.pieces.walk; decoding.walk is the same with a model that remembers",
}


def parsed() -> dict[str, ast.Module]:
    """The modules by name: ``models.gpt``, and ``models`` for its ``__init__``."""
    files = {path.relative_to(LIBRARY).with_suffix("").parts: path for path in sorted(LIBRARY.rglob("*.py"))}
    names = {".".join(part for part in parts if part != "__init__"): path for parts, path in files.items()}
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in names.items()}


MODULES = parsed()


def imported(module: str) -> set[str]:
    """What a module imports at any place in it: ``torch``, or ``models.gpt`` for our own."""
    found = set()
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name.removeprefix("course_lib.") in MODULES else node.module for name in inner}
    return {name if name.startswith("course_lib.") else name.split(".")[0] for name in found}


def ours(module: str) -> set[str]:
    return {name.removeprefix("course_lib.") for name in imported(module) if name.startswith("course_lib")}


def test_a_room_imports_only_rooms_before_it():
    for module in MODULES:
        room = module.split(".")[0]
        for name in ours(module):
            other = name.split(".")[0]
            assert other == room or ROOMS.index(other) < ROOMS.index(room), f"{module} → {name}"


def test_no_module_imports_itself_by_a_way_round():
    graphlib.TopologicalSorter({module: ours(module) for module in MODULES}).prepare()  # CycleError names them


def test_models_need_nothing_but_torch():
    for module in (name for name in MODULES if name.startswith("models")):
        others = {name for name in imported(module) if not name.startswith("course_lib.")} - sys.stdlib_module_names
        assert others <= {"torch"}, module
        assert {name.split(".")[0] for name in ours(module) - {"data.batches"}} <= {"models", "tokenizers"}, module


def test_private_operators_are_in_fast_only():
    for module, tree in MODULES.items():
        found = PRIVATE.findall(ast.unparse(tree))
        assert not found or module.startswith("fast."), f"{module}: {found}"


def test_there_is_one_progress_bar():
    """Another one, such as `tqdm.auto`, guesses where it runs, and prints where nothing should be printed."""
    assert [module for module in MODULES if "tqdm" in imported(module)] == ["progress_bar"]


def test_a_public_name_means_one_thing():
    """Of the exercises' modules only EXERCISES is used elsewhere; their other names are their own."""
    places = defaultdict(set)
    for module, tree in MODULES.items():
        for node in tree.body if not module.startswith("exercises.") else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                places[node.name].add(module)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in (n for n in ast.walk(target) if isinstance(n, ast.Name)):
                        places[name.id].add(module)
    twice = {name: found for name, found in places.items() if len(found) > 1 and not name.startswith("_")}
    assert not {name: found for name, found in twice.items() if name not in ALSO_TWICE}


def test_the_map_has_a_line_for_each_file():
    room, lines = "", []
    for indent, name in re.findall(r"^( {4}| {8})([\w/.]+)  ", ast.get_docstring(MODULES[""]), flags=re.M):
        room = name if len(indent) == 4 else room
        lines.append(name if name == room else room + name)
    rooms = [line.removesuffix(".py").rstrip("/") for line in lines if re.fullmatch(r"\w+(/|\.py)", line)]
    assert rooms == [room for room in ROOMS if room != "__main__"], "the map has the rooms in their order"
    one_a_lesson = ("exercises/", "lessons/")  # told in the room's own line
    files = {path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py")}
    files = {f for f in files if not f.startswith(one_a_lesson) and not f.endswith(("__init__.py", "__main__.py"))}
    assert {line for line in lines if line.endswith(".py")} == files, "a line a file in course_lib/__init__.py"


def test_tests_stand_in_rooms_like_the_librarys():
    others = {"benchmarks", "browser", "notebooks", "parity"}  # of scripts, views, lessons, peers
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.rglob("*/test_*.py")}
    assert folders - others <= set(ROOMS)
    for path in TESTS.glob("*/test_*.py"):
        room, module = path.parent.name, path.stem.removeprefix("test_")
        if room not in others | {"exercises"}:  # proved together: answers, slips, mutants
            assert f"{room}.{module}" in MODULES or module == room, f"{path}: no such module in the room"
