package io.kagent.assignor;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The plans that were followed, by the names of their members. Thread-safe. */
final class KeptPlans<T> {
    private static final int MOST = 10_000;

    private record Kept<T>(Group.Roster<T> roster, Map<String, List<Part<T>>> byName) {
    }

    private final Map<Set<String>, Kept<T>> plans = new Bounded<>(MOST);

    synchronized boolean isEmpty() {
        return plans.isEmpty();
    }

    synchronized boolean has(Set<String> names) {
        return plans.containsKey(names);
    }

    /** Remember what was followed. {@code placed}: member id → partitions. */
    synchronized void remember(Group<T> group, Map<String, List<Part<T>>> placed) {
        Map<String, List<Part<T>>> byName = new HashMap<>();
        group.members().forEach(member -> byName.put(member.name(), placed.get(member.id())));
        plans.put(byName.keySet(), new Kept<>(group.roster(), byName));
    }

    /** Member id → partitions if the group still stands where the plan put it, else null; what ended is forgotten. */
    synchronized Map<String, List<Part<T>>> kept(Group<T> group, boolean partial) {
        Set<String> names = new HashSet<>();
        group.members().forEach(member -> names.add(member.name()));
        Kept<T> kept = plans.get(names);
        if (kept == null) {
            return null;
        }
        Map<String, List<Part<T>>> placed = new HashMap<>();
        group.members().forEach(member -> placed.put(member.id(), kept.byName().get(member.name())));
        if (names.size() == group.members().size() && kept.roster().equals(group.roster()) && holds(group, placed, partial)) {
            return placed;
        }
        plans.remove(names);
        return null;
    }

    /** Whether every member holds what it is given, or, between two cooperative rebalances, nothing else. */
    static <T> boolean holds(Group<T> group, Map<String, List<Part<T>>> placed, boolean partial) {
        for (Member<T> member : group.members()) {
            Set<Part<T>> given = new HashSet<>(placed.get(member.id()));
            if (!(partial ? given.containsAll(member.held()) : given.equals(member.held()))) {
                return false;
            }
        }
        return true;
    }
}
