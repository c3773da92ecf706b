package io.kagent.assignor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongSupplier;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** What all assignors of one broker share: what was read, what is kept, what was counted. */
final class BrokerSide {
    private final Source reader;
    private final AssignorStats stats;
    private final KeptPlans<Uuid> kept = new KeptPlans<>();
    private final Decider<Uuid> decider = new Decider<>(kept);
    private final Rules rules;
    private final LongSupplier clockMs;

    BrokerSide(Settings settings, Source reader, LongSupplier clockMs) {
        this.reader = reader;
        this.clockMs = clockMs;
        this.stats = new AssignorStats(settings.mode(), reader);
        this.rules = new Rules(settings.mode(), settings.cluster(), null, settings.maxAgeMs(), false);
    }

    static BrokerSide started(Settings settings) {
        TopicReader reader = new TopicReader(settings, key -> key.indexOf('/') > 0, () -> true);
        BrokerSide side = new BrokerSide(settings, reader, System::currentTimeMillis);
        side.stats.register("broker");
        if (settings.mode() != Mode.OFF) {
            reader.startLater();
        }
        return side;
    }

    AssignorStats stats() {
        return stats;
    }

    /** The assignment to the letter of a plan, or null: uniform decides. Never throws and never waits. */
    GroupAssignment planned(GroupSpec spec, SubscribedTopicDescriber topics) {
        try {
            if (rules.mode() == Mode.OFF) {
                stats.count(Decision.builtIn(Reason.OFF, "following is switched off"), 0);
                return null;
            }
            reader.startNow();
            long began = System.nanoTime();
            Decision<Uuid> decision = decide(spec, topics);
            stats.count(decision, System.nanoTime() - began);
            boolean follow = decision.placed() != null && rules.mode() == Mode.FOLLOW;
            return follow ? assignment(spec, decision.placed()) : null;
        } catch (Exception | LinkageError | StackOverflowError error) {
            stats.failed(error);
            return null;
        }
    }

    private Decision<Uuid> decide(GroupSpec spec, SubscribedTopicDescriber topics) {
        try {
            Standing standing = reader.board().ofMembers(spec.memberIds());
            if (standing.recommendation() == null && !mayKeep(spec)) {
                // The usual case, and of large groups too: nothing of the group is copied.
                return decider.decide(NOBODY, standing, reader.readAtMs(), clockMs.getAsLong(), rules, name -> null);
            }
            if (tooLarge(spec, topics)) {
                return Decision.builtIn(Reason.NO_PLAN, "the group reads more than " + PlanCheck.LARGEST + " partitions");
            }
            Group<Uuid> group = group(spec, topics);
            Function<String, Uuid> ids = ids(standing);
            return decider.decide(held(group, spec), standing, reader.readAtMs(), clockMs.getAsLong(), rules, ids);
        } catch (Refused refused) {
            return Decision.builtIn(refused.reason(), refused.getMessage());
        }
    }

    private static final Group<Uuid> NOBODY = new Group<>(List.of(), Map.of());

    private boolean mayKeep(GroupSpec spec) {
        if (kept.isEmpty()) {
            return false;
        }
        Set<String> names = new HashSet<>();
        for (String id : spec.memberIds()) {
            MemberSubscription subscription = spec.memberSubscription(id);
            if (subscription.subscribedTopicIds().iterator().hasNext()) {
                names.add(subscription.instanceId().orElse(id));
            }
        }
        return kept.has(names);
    }

    /** Ends at the first members of a large group: what is refused must cost next to nothing. */
    private static boolean tooLarge(GroupSpec spec, SubscribedTopicDescriber topics) {
        Set<Uuid> seen = new HashSet<>();
        int partitions = 0;
        for (String id : spec.memberIds()) {
            for (Uuid topic : spec.memberSubscription(id).subscribedTopicIds()) {
                partitions += seen.add(topic) ? Math.max(0, topics.numPartitions(topic)) : 0;
                if (partitions > PlanCheck.LARGEST) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Without the members that read nothing, such as the one by which `kagent apply` moves the group's epoch. */
    private static Group<Uuid> group(GroupSpec spec, SubscribedTopicDescriber topics) {
        List<Member<Uuid>> members = new ArrayList<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String id : spec.memberIds()) {
            MemberSubscription subscription = spec.memberSubscription(id);
            // isEmpty() of this set counts topics that do not exist; only walking it tells.
            Set<Uuid> ids = new HashSet<>();
            subscription.subscribedTopicIds().forEach(ids::add);
            if (ids.isEmpty() && spec.memberAssignment(id).partitions().isEmpty()) {
                continue;
            }
            ids.forEach(topic -> counts.computeIfAbsent(topic, topics::numPartitions));
            String instanceId = subscription.instanceId().orElse(null);
            members.add(new Member<>(id, instanceId, ids, Set.of(), Member.UNKNOWN_GENERATION));
        }
        return Group.of(members, counts);
    }

    private static Group<Uuid> held(Group<Uuid> group, GroupSpec spec) {
        List<Member<Uuid>> members = new ArrayList<>();
        for (Member<Uuid> member : group.members()) {
            Set<Part<Uuid>> held = new HashSet<>();
            spec.memberAssignment(member.id()).partitions()
                .forEach((topic, numbers) -> numbers.forEach(number -> held.add(new Part<>(topic, number))));
            members.add(new Member<>(
                member.id(), member.instanceId(), member.topics(), held, Member.UNKNOWN_GENERATION));
        }
        return new Group<>(members, group.counts());
    }

    private static Function<String, Uuid> ids(Standing standing) {
        Recommendation rec = standing.lastPlan() != null ? standing.lastPlan() : standing.recommendation();
        Map<String, Uuid> ids = new HashMap<>();
        if (rec != null) {
            rec.topicIds().forEach((name, id) -> {
                try {
                    ids.put(name, Uuid.fromString(id));
                } catch (IllegalArgumentException malformed) {
                    // As if it were not there: the check then refuses for want of the id.
                }
            });
        }
        return ids::get;
    }

    private static GroupAssignment assignment(GroupSpec spec, Map<String, List<Part<Uuid>>> placed) {
        Map<String, MemberAssignment> members = new HashMap<>();
        for (String id : spec.memberIds()) {
            Map<Uuid, Set<Integer>> partitions = new HashMap<>();
            placed.getOrDefault(id, List.of()).forEach(part ->
                partitions.computeIfAbsent(part.topic(), topic -> new HashSet<>()).add(part.partition()));
            members.put(id, new Given(partitions));
        }
        return new GroupAssignment(members);
    }

    /** A member's partitions by topic id. */
    record Given(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {
    }
}
