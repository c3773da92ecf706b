"""The planner: the fewest moves that bring a group near the best that any assignment could have, with a proof.

Pure; numpy only. ``docs/planner.md`` explains it.
"""

from kagent.planner.plan import Move, Plan, lower_bound, plan
from kagent.planner.problem import PlanningProblem
from kagent.planner.search import QUICK, Budget

__all__ = ["QUICK", "Budget", "Move", "Plan", "PlanningProblem", "lower_bound", "plan"]
