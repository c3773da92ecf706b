package io.kagent.assignor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** A group as the coordinator shows it, and recommendations about it. */
final class Scene {
    static final long NOW_MS = 1_700_000_000_000L;

    final Map<Uuid, Integer> counts = new HashMap<>();
    final Map<String, Uuid> ids = new TreeMap<>();
    final Map<String, Set<Uuid>> topics = new TreeMap<>();
    final Map<String, String> instances = new HashMap<>();
    final Map<String, Map<Uuid, Set<Integer>>> held = new HashMap<>();

    /** Topics t0, t1, … with so many partitions each, members m0, m1, … that subscribe to all and hold nothing. */
    static Scene of(int members, int topics, int partitions) {
        Scene scene = new Scene();
        for (int t = 0; t < topics; t++) {
            scene.topic("t" + t, partitions);
        }
        for (int m = 0; m < members; m++) {
            scene.member("m" + m);
        }
        return scene;
    }

    void topic(String name, int partitions) {
        Uuid id = new Uuid(77, name.hashCode());
        ids.put(name, id);
        counts.put(id, partitions);
    }

    void member(String id) {
        topics.put(id, new HashSet<>(ids.values()));
        held.put(id, new HashMap<>());
    }

    Scene give(String member, String topic, int... partitions) {
        for (int partition : partitions) {
            held.get(member).computeIfAbsent(ids.get(topic), id -> new HashSet<>()).add(partition);
        }
        return this;
    }

    /** Every partition at a random member. */
    Scene dealt(Random dice) {
        List<String> names = new ArrayList<>(topics.keySet());
        counts.forEach((id, count) -> {
            for (int p = 0; p < count; p++) {
                held.get(names.get(dice.nextInt(names.size()))).computeIfAbsent(id, i -> new HashSet<>()).add(p);
            }
        });
        return this;
    }

    void holds(GroupAssignment given) {
        given.members().forEach((id, assignment) -> held.put(id, new HashMap<>(assignment.partitions())));
    }

    GroupSpec spec() {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        topics.forEach((id, wanted) -> {
            Optional<String> instance = Optional.ofNullable(instances.get(id));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, wanted, new Assignment(held.get(id))));
            held.get(id).forEach((topic, numbers) -> numbers.forEach(
                number -> inverted.computeIfAbsent(topic, t -> new HashMap<>()).put(number, id)));
        });
        boolean same = new HashSet<>(topics.values()).size() <= 1;
        SubscriptionType type = same ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(members, type, inverted);
    }

    SubscribedTopicDescriber describer() {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
    }

    /** The recommendation that turns what is held into {@code after}; {@code more} are further fields, which win. */
    String recommendation(Map<String, Map<Uuid, Set<Integer>>> after, String more) {
        StringJoiner members = new StringJoiner(",");
        StringJoiner moves = new StringJoiner(",");
        StringJoiner assignment = new StringJoiner(",");
        int moved = 0;
        for (String id : topics.keySet()) {
            members.add("{\"member\":\"" + id + "/h\",\"member_id\":\"" + id + "\",\"partitions\":1}");
            StringJoiner pairs = new StringJoiner(",");
            for (Map.Entry<Uuid, Set<Integer>> topic : after.getOrDefault(id, Map.of()).entrySet()) {
                for (int number : topic.getValue()) {
                    pairs.add("[\"" + name(topic.getKey()) + "\"," + number + "]");
                    String from = holder(topic.getKey(), number);
                    if (!id.equals(from)) {
                        moved++;
                        moves.add("{\"topic\":\"" + name(topic.getKey()) + "\",\"partition\":" + number + ",\"from\":"
                            + (from == null ? "null" : "\"" + from + "/h\"") + ",\"to\":\"" + id + "/h\"}");
                    }
                }
            }
            assignment.add("\"" + id + "/h\":[" + pairs + "]");
        }
        StringJoiner partitions = new StringJoiner(",");
        StringJoiner topicIds = new StringJoiner(",");
        ids.forEach((name, id) -> {
            partitions.add("\"" + name + "\":" + counts.get(id));
            topicIds.add("\"" + name + "\":\"" + id + "\"");
        });
        return "{\"schema\":1,\"id\":\"i1\",\"cluster\":\"main\",\"group\":\"g\",\"status\":\"open\",\"as_of\":1,"
            + "\"valid_until\":" + (NOW_MS + 60_000) + ",\"members\":[" + members + "],\"moves\":[" + moves + "],"
            + "\"move_count\":" + moved + ",\"assignment\":{" + assignment + "},"
            + "\"actions\":[{\"type\":\"follow_plan\",\"feasible\":\"yes\"}],\"basis\":{\"generation\":3,\"partitions\":{"
            + partitions + "}},\"topic_ids\":{" + topicIds + "}" + (more.isEmpty() ? "" : "," + more) + "}";
    }

    private String holder(Uuid topic, int number) {
        for (Map.Entry<String, Map<Uuid, Set<Integer>>> member : held.entrySet()) {
            if (member.getValue().getOrDefault(topic, Set.of()).contains(number)) {
                return member.getKey();
            }
        }
        return null;
    }

    private String name(Uuid id) {
        return ids.entrySet().stream().filter(e -> e.getValue().equals(id)).findFirst().orElseThrow().getKey();
    }
}
