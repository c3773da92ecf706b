package io.kagent.assignor;

/**
 * What stands on kagent's topics under the key of one group.
 *
 * @param key            {@code <cluster>/<group>}
 * @param recommendation null where there is none
 * @param unreadable     whether the last message under the key is none that this version knows
 * @param mutedUntilMs   ms since the epoch; 0 where the group is not muted
 */
record Standing(String key, Recommendation recommendation, boolean unreadable, long mutedUntilMs) {

    static Standing empty(String key) {
        return new Standing(key, null, false, 0);
    }

    Standing recommended(Recommendation read, boolean isUnreadable) {
        return new Standing(key, read, isUnreadable, mutedUntilMs);
    }

    Standing muted(long untilMs) {
        return new Standing(key, recommendation, unreadable, untilMs);
    }

    boolean isEmpty() {
        return recommendation == null && !unreadable && mutedUntilMs == 0;
    }
}
