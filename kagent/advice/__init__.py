"""From what is seen of a group to what is said of it: lag, skew, verdicts, actions, the life of an incident. Pure.

``judge(observation, state, policy)`` gives a judgement: the state to keep, messages to send and perhaps a candidate, which
``confirm(candidate, fresh_observation, state, policy)`` publishes or drops.
"""
