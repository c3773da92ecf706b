package io.kagent.assignor;

import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What happens at a rebalance: the open plan is followed, the last one kept, or the built-in assignor decides.
 *
 * <p>What it places is every subscribed partition exactly once, at a member that subscribes to its topic, whatever the
 * recommendation says; else it places nothing. It only computes: nothing here waits.
 */
final class Decider<T> {
    private final KeptPlans<T> followed;

    Decider(KeptPlans<T> followed) {
        this.followed = followed;
    }

    /**
     * @param readAtMs when kagent's topics were last read to their ends, ms since the epoch; negative: never
     * @param topicOf  the caller's topic for a name of the recommendation
     */
    Decision<T> decide(
        Group<T> group, Standing standing, long readAtMs, long nowMs, Rules rules, Function<String, T> topicOf
    ) {
        String about = standing.recommendation() == null ? "" : standing.recommendation().id();
        try {
            fresh(readAtMs, nowMs, rules);
            PlanCheck.open(standing, nowMs, rules);
            Map<String, List<Part<T>>> placed = check(group, standing.recommendation(), rules, topicOf).toFollow();
            if (rules.mode() == Mode.FOLLOW) {
                followed.remember(group, placed);
            }
            return new Decision<>(Reason.FOLLOWED, "the open recommendation is followed", placed, about);
        } catch (Refused refused) {
            Map<String, List<Part<T>>> kept = kept(group, standing, rules, topicOf);
            if (kept == null) {
                return new Decision<>(refused.reason(), refused.getMessage(), null, about);
            }
            return new Decision<>(
                Reason.KEPT, "the plan that was followed is kept; " + refused.getMessage(), kept, about);
        }
    }

    private static <T> PlanCheck<T> check(Group<T> group, Recommendation rec, Rules rules, Function<String, T> topicOf) {
        return new PlanCheck<>(group, rec, topicOf, rules.group() != null);
    }

    private static void fresh(long readAtMs, long nowMs, Rules rules) throws Refused {
        if (rules.mode() == Mode.OFF) {
            throw new Refused(Reason.OFF, "following is switched off");
        }
        if (readAtMs < 0) {
            throw new Refused(Reason.UNREACHABLE, "kagent's topics have not been read yet");
        }
        if (nowMs - readAtMs > rules.maxAgeMs()) {
            throw new Refused(Reason.STALE, "kagent's topics were last read " + (nowMs - readAtMs) / 1000 + " s ago");
        }
    }

    /** By memory, or, where another process followed it (a coordinator that moved), by the recommendation itself. */
    private Map<String, List<Part<T>>> kept(
        Group<T> group, Standing standing, Rules rules, Function<String, T> topicOf
    ) {
        if (rules.mode() != Mode.FOLLOW) {
            return null;
        }
        Map<String, List<Part<T>>> kept = followed.kept(group, rules.partial());
        return kept != null ? kept : recalled(group, standing, rules, topicOf);
    }

    private Map<String, List<Part<T>>> recalled(
        Group<T> group, Standing standing, Rules rules, Function<String, T> topicOf
    ) {
        Recommendation rec = standing.lastPlan();
        boolean ours = rec != null && rec.cluster().equals(rules.cluster());
        if (!ours || standing.recommendation().status().equals("superseded")) {
            return null;
        }
        // Members that hold less than the plan gives are on their way only if they rejoined since it was made.
        if (rules.partial() && group.generation() <= rec.generation()) {
            return null;
        }
        try {
            Map<String, List<Part<T>>> placed = check(group, rec, rules, topicOf).toKeep();
            if (!KeptPlans.holds(group, placed, rules.partial())) {
                return null;
            }
            followed.remember(group, placed);
            return placed;
        } catch (Refused refused) {
            return null;
        }
    }
}
