"""What each constant of the judgement decides: `python benchmarks/constants.py --captures FOLDER… --scenarios FILE…`.

Every number in a constant of the judgement's packages is halved and doubled (a share between 0 and 1: halved, and its rest
halved), in a copy of the package, and the groups of captures and scenarios are judged again. A line a number: how many groups
are called right, how many healthy ones are reported, and minutes until the sick ones are. A number whose lines are those of
the first one decides nothing there: a candidate to be left out, or to be said by another constant. `--list` names and counts
the numbers by kind, and judges nothing. The kind follows from how a constant is written:

* ``unit``: a unit of time in another, ``SECOND_MS`` to ``DAY_MS``.
* ``sentinel``: below 0, or a power of two that no clock reaches: no figure has this value.
* ``bound``: marked as :data:`kagent.lag.bound.Bound`; a group below it is judged the same whatever the number is. The study's second line
  has all bounds ten times as large at once, and must show that nothing changed.
* ``judgement``: every other one.

A constant without a number of its own says what others do and is not counted. The 1 of a formula over other constants or over defaults of the
policy is arithmetic, an index into a constant a place; neither is a number of its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeAlias

from captures import KNOWN_FOR, score

from kagent.policy import Policies, Policy
from kagent.simulator import load, run

HERE = Path(__file__).resolve()
ROOT = HERE.parent.parent
PACKAGES = ("detect", "recommend", "incident", "lag")
KINDS = ("judgement", "bound", "sentinel", "unit")
UNITS = ("SECOND_MS", "MINUTE_MS", "HOUR_MS", "DAY_MS")
SEED = 8100
TENFOLD = 10
Judged: TypeAlias = dict[str, tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the source: its file below the root, the constant it belongs to, its kind, where it stands, and its value."""

    file: Path
    constant: str
    kind: str
    line: int
    column: int
    end: int
    value: float

    def changed(self, up: bool) -> str:
        """The number doubled or halved, as source text; a share stays one."""
        if isinstance(self.value, int):
            factor = TENFOLD if self.kind == "bound" else 2
            return str(self.value * factor if up else max(1, self.value // factor))
        if up and 0 < self.value < 1:
            return repr((1 + self.value) / 2)
        return repr(self.value * 2 if up else self.value / 2)


def numbers(packages: Sequence[str]) -> Iterator[Number]:
    """Every number above 0 in a module-level constant of these packages."""
    for package in packages:
        for path in sorted((ROOT / "kagent" / package).rglob("*.py")):
            for statement in ast.parse(path.read_text()).body:
                yield from _numbers(path.relative_to(ROOT), statement)


def _numbers(path: Path, statement: ast.stmt) -> Iterator[Number]:
    for constant, value, bound in _assigned(statement):
        formula = any(isinstance(node, ast.Name) and _is_given(node.id) for node in ast.walk(value))
        for node in _walk(value):
            if not isinstance(node, ast.Constant) or node.end_col_offset is None:
                continue
            if not isinstance(node.value, int | float) or isinstance(node.value, bool) or node.value <= 0:
                continue
            if formula and node.value == 1:
                continue
            kind = "bound" if bound else _kind(constant, value)
            yield Number(path, constant, kind, node.lineno, node.col_offset, node.end_col_offset, node.value)


def _is_given(name: str) -> bool:
    """Whether a name stands for numbers that are counted elsewhere: another constant, or the policy's defaults."""
    return name.isupper() or name == Policy.__name__


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr, bool]]:
    """The constants that a statement assigns, each with its value and whether it is marked as a bound."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target, value, bound = statement.target, statement.value, ast.unparse(statement.annotation) == "Bound"
    elif isinstance(statement, ast.Assign):
        target, value, bound = statement.targets[0], statement.value, False
    else:
        return
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=True))
    yield from ((ast.unparse(name), each, bound) for name, each in pairs if ast.unparse(name).isupper())


def _walk(value: ast.expr) -> Iterator[ast.AST]:
    """All parts of an expression but indexes."""
    yield value
    for child in ast.iter_child_nodes(value):
        if not (isinstance(value, ast.Subscript) and child is value.slice) and isinstance(child, ast.AST):
            yield from _walk(child)  # type: ignore[arg-type]


def _kind(constant: str, value: ast.expr) -> str:
    if constant in UNITS:
        return "unit"
    negative = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
    shifted = isinstance(value, ast.BinOp) and isinstance(value.op, ast.LShift)
    return "sentinel" if negative or shifted else "judgement"


def judged(captures: Sequence[Path], scenarios: Sequence[Path]) -> Judged:
    """Name of a group → "right", "wrong", "silent", "reported" or "quiet", and the minutes until it was reported rightly."""
    found: Judged = {}
    for folder in captures:
        for one in score(folder, Policies(), False, KNOWN_FOR)[0]:
            said = bool(one.verdicts)
            word = _word(one.healthy, said, one.first)
            found[f"{folder.name}/{one.group}"] = word, one.delay
    for path in scenarios:
        report = run(load(path, True), SEED)
        sick = report.right is not None
        minutes = report.waited / 60 if report.waited is not None else None
        found[path.stem] = _word(not sick, bool(report.openings), bool(report.right)), minutes
    return found


def _word(healthy: bool, said: bool, right: bool) -> str:
    if healthy:
        return "reported" if said else "quiet"
    return "right" if right else "wrong" if said else "silent"


def _run(changes: Sequence[tuple[Number, bool]], arguments: Sequence[str]) -> Judged:
    with tempfile.TemporaryDirectory() as folder:
        for package in ("kagent", "tables"):
            shutil.copytree(
                ROOT / package, Path(folder) / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        # From the right, so that the places of the others on the line stay what they are.
        for number, up in sorted(changes, key=lambda c: -c[0].column):
            path = Path(folder) / number.file
            lines = path.read_text().splitlines(keepends=True)
            line = lines[number.line - 1]
            lines[number.line - 1] = line[: number.column] + number.changed(up) + line[number.end :]
            path.write_text("".join(lines))
        environment = {**os.environ, "PYTHONPATH": f"{folder}:{HERE.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(HERE), "--child", *arguments]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines()[-1], None)}
        return {name: (word, minutes) for name, (word, minutes) in json.loads(done.stdout).items()}


def _line(name: str, found: Judged, base: Judged) -> str:
    words = [word for word, _ in found.values()]
    waits = sorted(minutes for _, minutes in found.values() if minutes is not None)
    late = (
        f"{median(waits):5.1f} {waits[int(0.95 * (len(waits) - 1))]:6.1f}" if waits else f"{'-':>5} {'-':>6}"
    )
    counts = " ".join(f"{words.count(w):>7}" for w in ("right", "wrong", "silent", "reported"))
    return f"{name:70} {counts} {late}   {_changes(found, base)}"


def _changes(found: Judged, base: Judged) -> str:
    if found == base:
        return "nothing"
    before = {name: word for name, (word, _) in base.items()}
    other = [f"{k}: {before.get(k, '-')} → {word}" for k, (word, _) in found.items() if before.get(k) != word]
    return ", ".join(other) or "delays alone"


def _print(chosen: Sequence[Number]) -> None:
    for kind in KINDS:
        of_kind = [n for n in chosen if n.kind == kind]
        print(*(f"{n.file}:{n.line}: {n.constant} {n.value}" for n in of_kind), sep="\n")
        print(f"{kind}: {len(of_kind)} numbers in {len({(n.file, n.constant) for n in of_kind})} constants\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--captures", nargs="*", type=Path, default=[])
    parser.add_argument("--scenarios", nargs="*", type=Path, default=[])
    parser.add_argument("--packages", nargs="*", default=PACKAGES)
    parser.add_argument(
        "--only", nargs="*", default=[""], help="constants whose file or name holds one of these texts"
    )
    parser.add_argument("--list", action="store_true", help="names and counts the numbers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(judged(asked.captures, asked.scenarios)))
        return
    chosen = [n for n in numbers(asked.packages) if any(t in f"{n.file}:{n.constant}" for t in asked.only)]
    if asked.list:
        _print(chosen)
        return
    arguments = ["--captures", *[str(p.resolve()) for p in asked.captures]]
    arguments += ["--scenarios", *[str(p.resolve()) for p in asked.scenarios]]
    base = _run([], arguments)
    print(
        f"{'':70} {'right':>7} {'wrong':>7} {'silent':>7} {'healthy':>7} {'p50':>5} {'p95':>6}   what changed"
    )
    print(_line("as it is", base, base), flush=True)
    bounds = [(n, True) for n in numbers(PACKAGES) if n.kind == "bound"]
    print(_line("all bounds ten times as large", _run(bounds, arguments), base), flush=True)
    changes = [(n, up) for n in chosen for up in (False, True) if n.changed(up) != str(n.value)]
    with ThreadPoolExecutor(asked.jobs) as pool:
        for (number, up), found in zip(
            changes, pool.map(lambda c: _run([c], arguments), changes), strict=True
        ):
            name = f"{number.file.relative_to('kagent')}: {number.constant} {number.value} → {number.changed(up)}"
            print(_line(name, found, base), flush=True)


if __name__ == "__main__":
    main()
