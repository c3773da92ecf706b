package io.kagent.assignor;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A group as the assignor sees it.
 *
 * @param members in the order of their ids
 * @param counts  partitions of each topic that some member subscribes to and that exists
 */
record Group<T>(List<Member<T>> members, Map<T, Integer> counts) {

    static <T> Group<T> of(List<Member<T>> members, Map<T, Integer> counts) {
        List<Member<T>> sorted = new ArrayList<>(members);
        sorted.sort(Comparator.comparing(Member::id));
        Map<T, Integer> existing = new HashMap<>();
        for (Member<T> member : sorted) {
            for (T topic : member.topics()) {
                int count = counts.getOrDefault(topic, 0);
                if (count > 0) {
                    existing.put(topic, count);
                }
            }
        }
        return new Group<>(sorted, existing);
    }

    boolean reads(Part<T> part) {
        return part.partition() >= 0 && part.partition() < counts.getOrDefault(part.topic(), 0);
    }

    int partitions() {
        return counts.values().stream().mapToInt(Integer::intValue).sum();
    }

    int generation() {
        return members.stream().mapToInt(Member::generation).max().orElse(Member.UNKNOWN_GENERATION);
    }

    /** What must stay the same for a plan to be kept: names with their subscriptions, and partition counts. */
    Roster<T> roster() {
        Map<String, Set<T>> topics = new HashMap<>();
        for (Member<T> member : members) {
            Set<T> existing = new HashSet<>(member.topics());
            existing.retainAll(counts.keySet());
            topics.put(member.name(), existing);
        }
        return new Roster<>(topics, counts);
    }

    record Roster<T>(Map<String, Set<T>> topics, Map<T, Integer> counts) {
    }
}
