"""Every assignment strategy the field knows: a scenario in, an assignment out.

>>> from kagent.strategies import Member, Scenario, assign
>>> group = Scenario.of([Member("C0", ("t0",)), Member("C1", ("t0",))], {"t0": 3})
>>> assign("range", group).to_dict()
{'C0': [('t0', 0), ('t0', 1)], 'C1': [('t0', 2)]}
"""

from kagent.strategies.assignment import Assignment
from kagent.strategies.registry import STRATEGIES, Strategy, assign
from kagent.strategies.scenario import Scenario
from kagent.strategies.subscribed_member import Member

__all__ = ["STRATEGIES", "Assignment", "Member", "Scenario", "Strategy", "assign"]
