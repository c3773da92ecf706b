package io.kagent.assignor;

/**
 * What stands on kagent's topics under the key of one group.
 *
 * @param key            {@code <cluster>/<group>}
 * @param recommendation null where there is none
 * @param lastPlan       the newest whole plan of the same incident: what says that it was followed has no plan any more
 * @param unreadable     whether the last message under the key is none that this version knows
 * @param mutedUntilMs   ms since the epoch; 0 where the group is not muted
 */
record Standing(
    String key, Recommendation recommendation, Recommendation lastPlan, boolean unreadable, long mutedUntilMs
) {

    static Standing empty(String key) {
        return new Standing(key, null, null, false, 0);
    }

    Standing recommended(Recommendation read, boolean isUnreadable) {
        return new Standing(key, read, plan(read), isUnreadable, mutedUntilMs);
    }

    private Recommendation plan(Recommendation read) {
        if (read == null || read.over()) {
            return null;
        }
        if (read.assignment() != null) {
            return read;
        }
        return lastPlan != null && lastPlan.id().equals(read.id()) ? lastPlan : null;
    }

    Standing muted(long untilMs) {
        return new Standing(key, recommendation, lastPlan, unreadable, untilMs);
    }

    boolean isEmpty() {
        return recommendation == null && !unreadable && mutedUntilMs == 0;
    }
}
