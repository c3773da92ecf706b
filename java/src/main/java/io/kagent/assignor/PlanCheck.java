package io.kagent.assignor;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Whether an open recommendation may be followed now; if not, the first reason why.
 *
 * <p>The checks and their order are those of {@code kagent.follow.followable} in Python: {@code follow-vectors.jsonl} holds both to
 * the same answers. Nothing is mended: a plan that is not exactly about this group as it stands is refused as a whole.
 *
 * @param topicOf      the caller's topic for a name of the recommendation; null where there is none
 * @param byInstanceId whether a static member that came back with a new id is still the one of the recommendation
 */
record PlanCheck<T>(Group<T> group, Recommendation rec, Function<String, T> topicOf, boolean byInstanceId) {
    /** Partitions of a plan: a recommendation does not give more of them whole. */
    static final int LARGEST = 2000;

    /** What has to hold before the group itself is looked at. */
    static void open(Standing standing, long nowMs, Rules rules) throws Refused {
        Recommendation rec = standing.recommendation();
        if (standing.unreadable()) {
            throw new Refused(Reason.UNREADABLE, "the recommendation cannot be read by this version");
        }
        if (rec == null) {
            throw new Refused(Reason.NOTHING_OPEN, "no recommendation is open");
        }
        if (!rec.cluster().equals(rules.cluster())) {
            throw new Refused(Reason.OTHER_CLUSTER, "the recommendation is of the cluster " + Text.shown(rec.cluster()));
        }
        String key = rec.cluster() + "/" + (rules.group() == null ? rec.group() : rules.group());
        if (!standing.key().equals(rec.cluster() + "/" + rec.group()) || !standing.key().equals(key)) {
            throw new Refused(Reason.OTHER_GROUP, "the recommendation is of the group " + Text.shown(rec.group()));
        }
        stands(rec, standing.mutedUntilMs(), nowMs);
    }

    private static void stands(Recommendation rec, long mutedUntilMs, long nowMs) throws Refused {
        if (rec.status().equals("resolved")) {
            throw new Refused(Reason.NOTHING_OPEN, "the recommendation is resolved");
        }
        if (rec.status().equals("superseded")) {
            throw new Refused(Reason.SUPERSEDED, "the recommendation is superseded: the group has changed since");
        }
        if (rec.stale()) {
            throw new Refused(Reason.BLIND, "kagent is blind for this group");
        }
        if (nowMs >= rec.validUntil()) {
            throw new Refused(Reason.EXPIRED, "the recommendation has expired");
        }
        if (nowMs < mutedUntilMs) {
            throw new Refused(Reason.MUTED, "the group is muted");
        }
        feasible(rec);
    }

    private static void feasible(Recommendation rec) throws Refused {
        if (!"yes".equals(rec.feasible())) {
            String why = rec.infeasibleBecause() == null ? "" : ": " + Text.shown(rec.infeasibleBecause());
            throw new Refused(Reason.INFEASIBLE, "following the plan is not among what can be done" + why);
        }
        boolean whole = rec.assignment() != null && !rec.assignment().isEmpty();
        if (!whole || rec.moves().isEmpty() || rec.moveCount() != rec.moves().size()) {
            throw new Refused(Reason.NO_PLAN, "the recommendation does not give a whole plan");
        }
        if (rec.assignment().values().stream().mapToInt(Collection::size).sum() > LARGEST) {
            throw new Refused(Reason.NO_PLAN, "the plan has more than " + LARGEST + " partitions");
        }
    }

    /** Member id → partitions, where the group stands exactly where the plan starts. */
    Map<String, List<Part<T>>> toFollow() throws Refused {
        Map<String, Member<T>> members = members();
        sameCounts();
        if (rec.generation() >= 0 && group.generation() >= 0 && rec.generation() != group.generation()) {
            throw new Refused(Reason.OTHER_GENERATION, "the recommendation is of generation " + rec.generation()
                + ", the group was in " + group.generation());
        }
        Map<String, List<Part<T>>> plan = exact(members);
        sameHoldings(plan, members);
        return byId(plan, members);
    }

    /** Member id → partitions, of a plan that the group may already have taken up, however old it is. */
    Map<String, List<Part<T>>> toKeep() throws Refused {
        feasible(rec);
        Map<String, Member<T>> members = members();
        sameCounts();
        return byId(exact(members), members);
    }

    private Map<String, List<Part<T>>> byId(Map<String, List<Part<T>>> plan, Map<String, Member<T>> members) {
        Map<String, List<Part<T>>> out = new HashMap<>();
        plan.forEach((name, parts) -> out.put(members.get(name).id(), parts));
        return out;
    }

    /** The members by the recommendation's names for them, in the order of their ids; the same here and there. */
    private Map<String, Member<T>> members() throws Refused {
        Map<String, String> nameOfId = new HashMap<>();
        Set<String> names = new HashSet<>();
        for (Recommendation.Told told : rec.members()) {
            boolean again = !names.add(told.name());
            if (again || (told.memberId() != null && nameOfId.put(told.memberId(), told.name()) != null)) {
                throw new Refused(Reason.OTHER_MEMBERS, "the recommendation names a member twice");
            }
        }
        Map<String, Member<T>> out = new LinkedHashMap<>();
        for (Member<T> member : group.members()) {
            String name = nameOfId.get(member.id());
            if (name == null && restarted(member, names)) {
                name = member.instanceId();
            }
            if (name == null || out.put(name, member) != null) {
                throw new Refused(Reason.OTHER_MEMBERS, Text.shown(member.name())
                    + " is in the group but not in the recommendation");
            }
        }
        same(names, out.keySet());
        return out;
    }

    private boolean restarted(Member<T> member, Set<String> names) {
        return byInstanceId && member.instanceId() != null && names.contains(member.instanceId());
    }

    private void same(Set<String> names, Set<String> present) throws Refused {
        for (String name : names) {
            if (!present.contains(name)) {
                throw new Refused(Reason.OTHER_MEMBERS, Text.shown(name)
                    + " is in the recommendation but not in the group");
            }
        }
        for (String name : rec.assignment().keySet()) {
            if (!present.contains(name)) {
                throw new Refused(Reason.OTHER_MEMBERS, "the plan gives partitions to " + Text.shown(name)
                    + ", who is no member");
            }
        }
    }

    private void sameCounts() throws Refused {
        Map<T, Integer> told = new HashMap<>();
        rec.counts().forEach((name, count) -> {
            T topic = topicOf.apply(name);
            if (topic != null) {
                told.put(topic, count);
            }
        });
        for (Map.Entry<T, Integer> topic : group.counts().entrySet()) {
            if (!told.containsKey(topic.getKey()) && told.size() < rec.counts().size()) {
                throw new Refused(Reason.NO_TOPIC_IDS, "the recommendation does not give the ids of all its topics");
            }
            if (!topic.getValue().equals(told.get(topic.getKey()))) {
                throw new Refused(Reason.OTHER_COUNTS, "topic " + Text.shown(topic.getKey().toString()) + " has "
                    + topic.getValue() + " partitions, in the recommendation " + told.get(topic.getKey()));
            }
        }
    }

    /** By name: every subscribed partition exactly once, at a member that subscribes to its topic. */
    private Map<String, List<Part<T>>> exact(Map<String, Member<T>> members) throws Refused {
        Map<String, List<Part<T>>> plan = new LinkedHashMap<>();
        Set<Part<T>> seen = new HashSet<>();
        for (Map.Entry<String, Member<T>> member : members.entrySet()) {
            List<Part<T>> parts = translated(rec.assignment().getOrDefault(member.getKey(), List.of()));
            for (Part<T> part : parts) {
                placeable(part, member.getValue(), seen);
            }
            plan.put(member.getKey(), parts);
        }
        if (seen.size() != group.partitions()) {
            throw new Refused(Reason.MISSING_PARTITION, "the plan gives " + (group.partitions() - seen.size())
                + " partitions to nobody");
        }
        return plan;
    }

    private void placeable(Part<T> part, Member<T> member, Set<Part<T>> seen) throws Refused {
        if (!group.reads(part)) {
            throw new Refused(Reason.UNKNOWN_PARTITION, "the plan has " + part + ", which the group does not read");
        }
        if (!seen.add(part)) {
            throw new Refused(Reason.DOUBLED_PARTITION, "the plan gives " + part + " twice");
        }
        if (!member.topics().contains(part.topic())) {
            throw new Refused(Reason.NOT_SUBSCRIBED, Text.shown(member.name()) + " does not subscribe to " + part);
        }
    }

    private List<Part<T>> translated(List<Part<String>> parts) {
        return parts.stream().map(this::translated).toList();
    }

    private Part<T> translated(Part<String> part) {
        return new Part<>(topicOf.apply(part.topic()), part.partition());
    }

    /** The members hold what the plan starts from: the plan with its moves taken back. */
    private void sameHoldings(Map<String, List<Part<T>>> plan, Map<String, Member<T>> members) throws Refused {
        Map<String, Set<Part<T>>> before = new TreeMap<>();
        plan.forEach((name, parts) -> before.put(name, new HashSet<>(parts)));
        for (Recommendation.Move move : rec.moves()) {
            Part<T> part = translated(move.part());
            boolean leaves = before.containsKey(move.to()) && before.get(move.to()).remove(part);
            if (!leaves || (move.from() != null && !before.containsKey(move.from()))) {
                throw new Refused(Reason.NO_PLAN, "the plan and its moves contradict each other about " + move.part());
            }
            if (move.from() != null) {
                before.get(move.from()).add(part);
            }
        }
        for (Map.Entry<String, Member<T>> member : members.entrySet()) {
            if (!before.get(member.getKey()).equals(member.getValue().held())) {
                throw new Refused(Reason.OTHER_HOLDINGS, Text.shown(member.getKey())
                    + " holds other partitions than the plan starts from");
            }
        }
    }
}
