"""What the source says of a dataclass's fields: the string below each, as sphinx and pydantic read them."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap


def descriptions(of: type) -> dict[str, str]:
    """Field → the text below it, on one line. Empty where the source is not at hand."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(of)))
    except (OSError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        before.target.id: " ".join(text.value.value.split())
        for before, text in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
