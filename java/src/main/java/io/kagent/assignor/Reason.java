package io.kagent.assignor;

import java.util.Locale;

/** Why an assignment went as it did; what is counted. The labels are those of {@code kagent.follow}'s reasons. */
public enum Reason {
    FOLLOWED,
    KEPT,
    OFF,
    LATCHED,
    UNREACHABLE,
    STALE,
    NOTHING_OPEN,
    UNREADABLE,
    OTHER_CLUSTER,
    OTHER_GROUP,
    SUPERSEDED,
    BLIND,
    EXPIRED,
    MUTED,
    INFEASIBLE,
    NO_PLAN,
    NO_TOPIC_IDS,
    AMBIGUOUS,
    OTHER_MEMBERS,
    OTHER_COUNTS,
    OTHER_GENERATION,
    OTHER_HOLDINGS,
    UNKNOWN_PARTITION,
    DOUBLED_PARTITION,
    MISSING_PARTITION,
    NOT_SUBSCRIBED,
    FAILED;

    private final String label = name().toLowerCase(Locale.ROOT);

    /** As it is counted and logged: {@code other_members}. */
    public String label() {
        return label;
    }
}
