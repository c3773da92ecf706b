"""How long the absence of a commit means nothing: what every rule about partitions and members that stand rests on."""

USUAL_GAP_S = 60.0
"""Clients commit every few seconds to a minute: what lasts for less says nothing where no gap of the member's own is known, or where
it is shorter."""
MISSING_GAPS = 3
"""A commit comes late by a gap or two by chance, where a poll takes longer; when this many are missing it is not chance (judgement,
not measured)."""
LONGEST_GAP_S = 3600.0
"""Some groups commit once an hour. A standstill must last as long where it is unknown how often its group commits, or how long a fetch
takes it."""
KEPT_GAPS = 9
"""Up to four gaps that are not the usual ones leave the median of nine among the usual ones."""
