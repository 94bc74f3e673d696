"""Makes mutants of a module: its text with one small mistake.

A mutant has as many lines as the original, so each function still begins where it began. Left alone are annotations,
decorators, defaults, texts, and what stands in a class outside of its methods.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip


class Mutant(NamedTuple):
    """One mistake in one file."""

    path: Path
    line: int
    before: str
    """The line as it is, without its indentation."""
    after: str
    """The line with the mistake; where it spans several, the mistake alone."""
    text: str
    """The whole file with the mistake."""
    constant: str
    """The module's constant that has another value; empty where it is in a function."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n-    {self.before}\n+    {self.after}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node, constant in _mutable(ast.parse(text), "", in_function=False):
        last, last_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        start, end = starts[node.lineno - 1] + node.col_offset, starts[last - 1] + last_column
        line_start, line_end = starts[node.lineno - 1], starts[last] - 1
        for changed in _changed(node):
            new = ast.unparse(changed).encode()
            padding = b"\n" * (last - node.lineno)
            put = b"(" + new + padding + b")" if isinstance(node, ast.expr) else new + padding
            is_short = not padding
            after = text[line_start:start] + new + text[end:line_end] if is_short else new
            before = text[line_start:line_end] if is_short else ast.unparse(node).encode()
            whole = text[:start] + put + text[end:]
            yield Mutant(path, node.lineno, before.decode().strip(), after.decode().strip(), whole.decode(), constant)


def _mutable(node: ast.AST, constant: str, *, in_function: bool) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the nodes in one that may be changed, each with the constant that it is a part of."""
    for child in _children(node, in_function=in_function):
        is_strict = isinstance(child, ast.keyword) and child.arg == "strict"  # which only guards against mistakes
        if is_strict or isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.pattern):
            continue
        enters = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.expr | ast.stmt) and (in_function or (constant and not enters)):
            yield child, "" if in_function else constant
        named = constant
        if isinstance(node, ast.Module):
            target = child.targets[0] if isinstance(child, ast.Assign) else getattr(child, "target", None)
            named = target.id if isinstance(target, ast.Name) else ""
        yield from _mutable(child, named, in_function=in_function or enters)


def _children(node: ast.AST, *, in_function: bool) -> list[ast.AST]:
    if isinstance(node, ast.ClassDef) and not in_function:
        return [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return list(node.body)
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    return list(ast.iter_child_nodes(node))


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    return _changed_statement(node) if isinstance(node, ast.stmt) else _changed_expression(node)


def _changed_expression(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                ops = [*node.ops[:at], COMPARISONS[type(op)](), *node.ops[at + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case ast.BinOp() if type(node.op) in OPERATORS and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)


def _changed_statement(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.AugAssign():
            if type(node.op) in OPERATORS:
                yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
            yield ast.Pass()
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
