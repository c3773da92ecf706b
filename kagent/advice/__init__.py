"""From what is seen of a group to what is said of it: lag, skew, verdicts, actions, the life of an incident. Pure.

    Observation + JudgeState + Policy → judge() → Judgement(state, candidate, messages)
    Candidate + fresh Observation     → confirm() → Judgement
"""
