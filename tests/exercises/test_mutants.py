"""Mutants of each library piece, made from its syntax tree: a check that lets one through has a hole."""

import ast
import copy
import dataclasses
import difflib
import inspect
import itertools
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator

import pytest
from bank import LESSONS, answers_of, exercises

from course_lib.lab.grading import grade

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult}
COMPARISONS = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
FUNCTIONS = {
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "sum": "mean",
    "norm": "sum",
    "chunk": "split",
    "stack": "hstack",
    "tril": "triu",
}


def replacements(node: ast.AST, names: list[str]) -> Iterator[ast.AST | None]:
    """Wrong nodes for a right one; None deletes a statement."""
    if isinstance(node, ast.BinOp):
        yield node.left
        yield node.right
        if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        if isinstance(node.op, ast.Div | ast.Sub | ast.MatMult):
            yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.Call):
        yield from node.args  # tanh(t) → t
        if isinstance(node.func, ast.Attribute) and not node.args:
            yield node.func.value  # t.norm() → t
    elif isinstance(node, ast.Attribute):
        yield node.value  # W.T → W
        if node.attr in FUNCTIONS:
            yield ast.Attribute(node.value, FUNCTIONS[node.attr], node.ctx)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Tuple):
        for order in itertools.permutations(node.elts):
            yield ast.Tuple(list(order), node.ctx)
    elif isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            if type(operator) in COMPARISONS:
                operators = [COMPARISONS[type(operator)]() if i == k else o for i, o in enumerate(node.ops)]
                yield ast.Compare(node.left, operators, node.comparators)
        if len(node.ops) > 1:
            yield ast.Compare(node.left, node.ops[:-1], node.comparators[:-1])
            yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
    elif isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.If):
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        yield ast.If(ast.Constant(True), node.body, node.orelse)
        yield None
    elif isinstance(node, ast.For):
        for part in ("[1:]", "[:-1]", "[::-1]"):
            walked = ast.parse(f"list({ast.unparse(node.iter)}){part}", mode="eval").body
            yield ast.For(node.target, walked, node.body, [])
        yield None
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield ast.comprehension(node.target, node.iter, [], 0)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        yield from (ast.Name(name, node.ctx) for name in names if name != node.id)
    elif isinstance(node, ast.Return):
        yield None
    elif isinstance(node, ast.Expr | ast.Assign):
        yield ast.Pass()


class Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST | None):
        self.old, self.new = old, new

    def visit(self, node: ast.AST):
        return self.new if node is self.old else self.generic_visit(node)


def mutants(function: Callable) -> dict[str, Callable]:
    """What is changed, as the new line → the changed function; of a class, its methods are changed."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    definition.body = definition.body[1:]  # the docstring
    methods = definition.body if isinstance(definition, ast.ClassDef) else [definition]
    arguments = [argument for method in methods for argument in method.args.args]
    for part in (*methods, *arguments):
        part.returns = part.annotation = None
    original = ast.unparse(tree)
    stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = [name for name in dict.fromkeys([*(a.arg for a in arguments), *stored]) if name != "self"]
    made = {}
    for node in itertools.chain.from_iterable(map(ast.walk, methods)):
        for new in replacements(node, names):
            memo: dict = {}
            changed = copy.deepcopy(tree, memo)
            Replace(memo[id(node)], copy.deepcopy(new)).visit(changed)
            try:
                text = ast.unparse(ast.fix_missing_locations(changed))
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # no mutant where Python itself points at the slip, as in 1[0]
                    code = compile(text, "mutant", "exec")
            except (SyntaxError, ValueError, AttributeError):
                continue
            lines = [x[2:].strip() for x in difflib.ndiff(original.splitlines(), text.splitlines()) if x[:2] == "+ "]
            gone = [x[2:].strip() for x in difflib.ndiff(original.splitlines(), text.splitlines()) if x[:2] == "- "]
            label = " / ".join(lines) or "without " + " / ".join(gone)
            if text != original and label not in made:
                namespace = dict(vars(sys.modules[function.__module__]))
                exec(code, namespace)
                made[label] = namespace[function.__name__]
    return made


@pytest.mark.parametrize(("lesson", "id"), [(lesson, id) for lesson in LESSONS for id in exercises(lesson)])
def test_mutants_are_caught(lesson, id):
    """A mutant may loop for ever: it gets a second. One that is no mistake gets all the time that it needs."""
    exercise, right = exercises(lesson)[id], answers_of(lesson).EQUIVALENT[id]
    made = mutants(exercise.reference)
    assert len(made) >= 20
    limits = {change: dataclasses.replace(exercise, seconds=60 if change in right else 1) for change in made}
    survivors = [change for change, mutant in made.items() if grade(limits[change], mutant).state != "wrong"]
    assert sorted(survivors) == sorted(right)
