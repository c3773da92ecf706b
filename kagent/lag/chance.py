"""What is taken for chance, and what no longer, for every rule of the judgement."""

from __future__ import annotations

from statistics import NormalDist

NOT_CHANCE = 3
"""What happens once or twice may be chance; what happens three times is not. Three points make a trend, three windows a speed, three
commits that are missing a silence, three rebalances that a record outlasts a crash loop (judgement, not measured)."""
UNSEEN = 0.05
"""The share that is left out of account. An estimate may be off by this share of it beyond what its own figures show: the lateness of before
the known log ends (a delay of 900 s for good was seen as 884 to 930 s while the history was shorter), and the speed of a member. And in this
share of all cases a quantity may lie beyond the end of its interval."""
Z = NormalDist().inv_cdf(1 - UNSEEN)
"""95 %, one-sided: how many standard errors an estimate may be off (1.64)."""
CLEARLY = 1.5
"""What is this many times as much, or lasts this many times as long, is clearly more: a pause than the longest one before it, the end of a
spell than what ends it, two of three looks than the third. Noise at a limit does not cross another one that is so far from it."""
TAIL = 2.0
"""The next one is longer than the longest of n with probability 1/(n+1); the factor buys the tail: of spells, of absences, of what may have
been read since a commit, and of an hour."""
RARE = 1_000
"""What chance brings less than once in this number is a change: in looks at the groups of a topic or broker, and in days of a healthy
group. More than one false report in as many would be too many."""
