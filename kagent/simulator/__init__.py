"""A broker, a group and kagent's own way of looking at them, simulated: seeded, pure, faster than the clock.

What the judgement gets to see is made as in production: commits of members at their own cadence, collapsed by a pipeline's
trigger, log ends sampled by polling, ticks, and a confirmation with fresh numbers. ``docs/judgement.md`` explains the
scenario files.
"""

from kagent.simulator.run import run, run_many
from kagent.simulator.scenario_file import SimulatorScenario, load
from kagent.simulator.scenario_report import Opening, Report

__all__ = ["Opening", "Report", "SimulatorScenario", "load", "run", "run_many"]
