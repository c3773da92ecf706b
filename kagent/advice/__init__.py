"""What decides: lag, skew, policy, verdicts, plan and actions. Pure; the clock and all offsets are passed in."""
