"""A name keeps its meaning through a lesson, so that a reader can go back and run any cell again.

A cell that takes a name from a cell before it must find the same thing there after the whole lesson has run: no later
cell gives that name to something else, or puts something into what it stands for. Else the cells that made it, run
again, would take that away from those further down.
"""

import ast
import re
import symtable
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from course_lib.lab import run as notebooks


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from tables(inner)


def names(code: ast.AST) -> tuple[set[str], set[str]]:
    """The global names that a statement or an expression reads, also inside functions, and those that it binds."""
    top = symtable.symtable(ast.unparse(ast.fix_missing_locations(code)), "cell", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    inner = (s for table in list(tables(top))[1:] for s in table.get_symbols())
    return read | {s.get_name() for s in inner if s.is_global() and s.is_referenced()}, bound


def steps(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements with loops and branches taken apart, in the order in which they run."""
    for statement in statements:
        match statement:
            case ast.For():
                yield ast.Assign([statement.target], statement.iter)
                yield from steps(statement.body)
            case ast.With():
                for item in statement.items:
                    value = item.context_expr
                    yield ast.Assign([item.optional_vars], value) if item.optional_vars else ast.Expr(value)
                yield from steps(statement.body)
            case ast.If():
                yield ast.Expr(statement.test)
                yield from steps(statement.body + statement.orelse)
            case _:
                yield statement


IN_PLACE = {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "sort", "update"}


def owner(place: ast.expr) -> str | None:
    """The name before all dots and brackets: ``a`` of ``a.b[c]``."""
    while isinstance(place, ast.Attribute | ast.Subscript):
        place = place.value
    return place.id if isinstance(place, ast.Name) else None


def filled(step: ast.stmt) -> set[str]:
    """The names of what a statement changes in place: ``a`` in ``a[0] = 1``, ``a.b = 1``, ``a += [1]``, ``a.b_()``."""
    if isinstance(step, ast.FunctionDef | ast.ClassDef):
        return set()
    parts = list(ast.walk(step))
    places = [part for part in parts if isinstance(part, ast.Attribute | ast.Subscript)]
    found = {owner(place) for place in places if not isinstance(place.ctx, ast.Load)}
    found |= {owner(part.target) for part in parts if isinstance(part, ast.AugAssign)}
    calls = [part for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    calls = [call for call in calls if call.func.attr in IN_PLACE or call.func.attr.endswith("_")]
    found |= {owner(call.args[0] if owner(call.func) == "nn" else call.func) for call in calls}  # nn.init.zeros_(a)
    return found - {None}


class Cell:
    """What a cell makes, and what it takes: ``now``, when it runs, and ``later``, when a function of it is called.

    ``filled``: what it changes in place and has not made.
    """

    def __init__(self, source: str):
        self.made: set[str] = set()
        self.filled: set[str] = set()
        self.now: set[str] = set()
        self.later: set[str] = set()
        shell = re.compile(r"^(\s*)[!%].*", flags=re.M)
        for step in steps(ast.parse(shell.sub(r"\1pass", source)).body):
            read, bound = names(step)
            self.filled |= filled(step) - self.made
            if isinstance(step, ast.FunctionDef | ast.ClassDef):
                self.later |= read
            elif isinstance(step, ast.Assign):  # what stands on the right is read first
                self.now |= (names(ast.Expr(step.value))[0] | read - bound) - self.made
            else:
                self.now |= read - self.made
            self.made |= bound


def reused(sources: dict[int, str]) -> list[str]:
    """A sentence for each name that a cell takes from an earlier one and a later cell gives to something else."""
    cells = {place: Cell(source) for place, source in sources.items()}
    found = []
    for place, cell in cells.items():
        for name in sorted(cell.now | cell.later):
            made = [other for other in cells if name in cells[other].made]
            before = [other for other in made if other < place + (name in cell.later)]
            if before and (after := [other for other in made if other > place]):
                found.append(f"{name}: made in [{before[-1]}], read in [{place}], another thing from {after} on")
    return found


def filled_elsewhere(sources: dict[int, str]) -> list[str]:
    """A sentence for each thing of another cell that a cell changes in place."""
    cells = {place: Cell(source) for place, source in sources.items()}
    made = set().union(*(cell.made for cell in cells.values()))
    return [f"{name}: changed in [{place}]" for place, cell in cells.items() for name in sorted(cell.filled & made)]


def test_what_counts_as_filled():
    changes = ["a['x'] = 1", "a.x = 1", "a += [1]", "a.x.append(1)", "a.w.copy_(b)", "del a[0]", "b, a[0] = 1, 2"]
    for change in [*changes, "nn.init.zeros_(a.w)"]:
        assert filled_elsewhere({1: "a = {}", 2: change}) == ["a: changed in [2]"], change
        assert filled_elsewhere({1: "a = {}", 2: f"for b in a:\n    {change}"}) == ["a: changed in [2]"], change
        assert not filled_elsewhere({1: f"a = {{}}\n{change}"}), change
    for fine in ("b = a['x']", "b = a.copy()", "load(a).zero_()", "def f(a):\n    a.append(1)"):
        assert not filled_elsewhere({1: "a = {}", 2: fine}), fine


def test_what_counts_as_reused():
    assert reused({1: "a = 1", 2: "print(a)", 3: "a = 2"}) == ["a: made in [1], read in [2], another thing from [3] on"]
    assert reused({1: "a = 1\ndef f():\n    return a", 2: "for a in b:\n    print(a)"})  # f finds it when it is called
    assert reused({1: "a = []", 2: "a = a + [1]", 3: "a = 0"})
    assert not reused({1: "a = 1\nprint(a)", 2: "for a in (1, 2):\n    print(a)", 3: "[a for a in (1, 2)]"})
    assert not reused({1: "def f(a):\n    return a", 2: "a = f(1)", 3: "lambda a: a"})
    assert not reused({1: "def f():\n    return a", 2: "a = 1", 3: "f()"})


def code(path: Path) -> dict[int, str]:
    cells = nbformat.read(path, as_version=4).cells
    return {place: cell.source for place, cell in enumerate(cells) if cell.cell_type == "code"}


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_no_name_is_used_for_two_things(path: Path):
    assert reused(code(path)) == []


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_no_cell_changes_what_another_made(path: Path):
    assert filled_elsewhere(code(path)) == []
