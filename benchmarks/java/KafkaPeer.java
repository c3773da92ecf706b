import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.nio.ByteBuffer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/** Kafka's own assignors, and the plain loop of the lag-based one, which is not published as a jar. */
final class KafkaPeer extends Harness {
    private final Map<String, List<PartitionInfo>> infos = new HashMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<String, Uuid> byName = new HashMap<>();

    KafkaPeer(String[] args) {
        super(args);
        for (int t = 0; t < topics; t++) {
            names.put(id(t), topic(t));
            byName.put(topic(t), id(t));
        }
        infos.putAll(infos());
    }

    private Map<String, List<PartitionInfo>> infos() {
        Node[] none = {};
        Map<String, List<PartitionInfo>> made = new HashMap<>();
        for (String topic : byName.keySet()) {
            List<PartitionInfo> list = new ArrayList<>();
            for (int p = 0; p < partitions; p++) list.add(new PartitionInfo(topic, p, Node.noNode(), none, none));
            made.put(topic, list);
        }
        return made;
    }

    /** What a leader makes of its group's rows before it can assign: subscriptions with owned partitions, and metadata. */
    private Object built(Map<String, List<String>> named, Map<String, Map<String, int[]>> held) {
        Map<String, Subscription> made = new HashMap<>();
        named.forEach((m, topics) -> {
            List<TopicPartition> owned = new ArrayList<>();
            held.getOrDefault(m, Map.of()).forEach((t, ps) -> { for (int p : ps) owned.add(new TopicPartition(t, p)); });
            made.put(m, new Subscription(topics, null, owned, 1, Optional.empty()));
        });
        return List.of(made, infos());
    }

    private Map<String, List<String>> named(int gone) {
        List<String> everything = subscription(0);
        Map<String, List<String>> named = new HashMap<>();
        for (int m = 0; m < members; m++)
            if (m != gone) named.put(member(m), kind.equals("same") ? everything : subscription(m));
        return named;
    }

    private static Map<String, Map<String, int[]>> plainRows(Map<String, List<TopicPartition>> owned) {
        Map<String, Map<String, int[]>> rows = new HashMap<>();
        owned.forEach((m, list) -> rows.put(m, plain(list.stream().collect(Collectors.groupingBy(
            TopicPartition::topic, Collectors.mapping(TopicPartition::partition, Collectors.toList()))))));
        return rows;
    }

    public static void main(String[] args) throws Exception {
        KafkaPeer peer = new KafkaPeer(args);
        for (int i = 5; i < args.length; i++) {
            if (args[i].equals("kip848-uniform")) peer.uniform();
            else if (args[i].equals("kip848-range")) peer.serverRange();
            else if (args[i].equals("lag")) peer.lag();
            else peer.client(args[i]);
        }
    }

    private static AbstractPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    @SuppressWarnings("unchecked")
    private void client(String name) throws Exception {
        Rows rows = (result, digest) -> ((Map<String, List<TopicPartition>>) result)
            .forEach((m, list) -> list.forEach(tp -> digest.row(m, tp.topic(), tp.partition())));
        Map<String, Subscription> first = new HashMap<>();
        for (int m = 0; m < members; m++) first.put(member(m), new Subscription(subscription(m)));
        Map<String, List<String>> all = named(-1), left = named(members / 2);
        Object before = measure(name, "first", () -> built(all, Map.of()), () -> assignor(name).assignPartitions(infos, first), rows);
        Map<String, List<TopicPartition>> owned = (Map<String, List<TopicPartition>>) before;
        Map<String, Subscription> second = new HashMap<>();
        for (int m = 0; m < members; m++)
            if (m != members / 2) second.put(member(m), rejoining(name, subscription(m), owned.get(member(m))));
        Map<String, Map<String, int[]>> held = plainRows(owned);
        measure(name, "leave", () -> built(left, held), () -> {
            second.values().forEach(s -> { if (s.userData() != null) s.userData().rewind(); });
            return assignor(name).assignPartitions(infos, second);
        }, rows);
    }

    private static Subscription rejoining(String name, List<String> topics, List<TopicPartition> owned) {
        if (name.equals("sticky")) {
            StickyAssignor told = new StickyAssignor();
            told.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", 1, "m", Optional.empty()));
            ByteBuffer data = told.subscriptionUserData(new HashSet<>(topics));
            return new Subscription(topics, data, Collections.emptyList(), 1, Optional.empty());
        }
        return new Subscription(topics, null, owned, 1, Optional.empty());
    }

    private static Uuid id(int t) {
        return new Uuid((t + 1) * 0x9E3779B97F4A7C15L, (t + 1) * 0xC2B2AE3D27D4EB4FL);
    }

    private void uniform() throws Exception {
        server("kip848-uniform", (spec, describer) -> new UniformAssignor().assign(spec, describer));
    }

    private void serverRange() throws Exception {
        server("kip848-range",
            (spec, describer) -> new org.apache.kafka.coordinator.group.assignor.RangeAssignor().assign(spec, describer));
    }

    interface ServerAssignor {
        GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber describer);
    }

    private void server(String name, ServerAssignor assignor) throws Exception {
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topic) { return names.containsKey(topic) ? partitions : -1; }
            public Set<String> racksForPartition(Uuid topic, int partition) { return Set.of(); }
        };
        Rows rows = (result, digest) -> ((GroupAssignment) result).members().forEach((m, a) ->
            a.partitions().forEach((t, ps) -> ps.forEach(p -> digest.row(m, names.get(t), p))));
        Map<String, List<String>> all = named(-1), some = named(members / 2);
        GroupSpec empty = spec(all, new HashMap<>());
        GroupAssignment before = (GroupAssignment) measure(
            name, "first", () -> spec(all, new HashMap<>()), () -> assignor.assign(empty, describer), rows);
        Map<String, Map<Uuid, Set<Integer>>> held = new HashMap<>();
        before.members().forEach((m, a) -> held.put(m, copy(a.partitions())));
        GroupSpec left = spec(some, held);
        Map<String, Map<String, int[]>> plain = new HashMap<>();
        held.forEach((m, ts) -> plain.put(m, plain(ts.entrySet().stream()
            .collect(Collectors.toMap(e -> names.get(e.getKey()), Map.Entry::getValue)))));
        measure(name, "leave", () -> spec(some, sets(plain)), () -> assignor.assign(left, describer), rows);
    }

    private static Map<Uuid, Set<Integer>> copy(Map<Uuid, Set<Integer>> held) {
        return Collections.unmodifiableMap(held.entrySet().stream()
            .collect(Collectors.toMap(Map.Entry::getKey, e -> new HashSet<>(e.getValue()))));
    }

    private Map<String, Map<Uuid, Set<Integer>>> sets(Map<String, Map<String, int[]>> plain) {
        Map<String, Map<Uuid, Set<Integer>>> held = new HashMap<>();
        plain.forEach((m, ts) -> {
            Map<Uuid, Set<Integer>> mine = new HashMap<>();
            ts.forEach((t, ps) -> {
                Set<Integer> set = new HashSet<>(ps.length * 4 / 3 + 1);
                for (int p : ps) set.add(p);
                mine.put(byName.get(t), set);
            });
            held.put(m, mine);
        });
        return held;
    }

    /** What the broker's TopicIds is: a view of a set of names. */
    private Set<Uuid> ids(Set<String> named) {
        return new AbstractSet<>() {
            public int size() { return named.size(); }
            public boolean contains(Object id) { return id instanceof Uuid && named.contains(names.get(id)); }
            public Iterator<Uuid> iterator() { return named.stream().map(byName::get).iterator(); }
        };
    }

    private GroupSpec spec(Map<String, List<String>> named, Map<String, Map<Uuid, Set<Integer>>> held) {
        Map<String, MemberSubscription> subscriptions = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        Map<List<String>, Set<Uuid>> shared = new IdentityHashMap<>();
        named.forEach((name, topics) -> {
            Set<Uuid> ids = shared.computeIfAbsent(topics, t -> ids(new HashSet<>(t)));
            subscriptions.put(name, new MemberSubscription() {
                public Optional<String> rackId() { return Optional.empty(); }
                public Optional<String> instanceId() { return Optional.empty(); }
                public Set<Uuid> subscribedTopicIds() { return ids; }
            });
            held.getOrDefault(name, Map.of()).forEach((t, ps) ->
                ps.forEach(p -> inverted.computeIfAbsent(t, k -> new HashMap<>()).put(p, name)));
        });
        boolean same = kind.equals("same");
        return new GroupSpec() {
            public Collection<String> memberIds() { return subscriptions.keySet(); }
            public SubscriptionType subscriptionType() {
                return same ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            }
            public boolean isPartitionAssigned(Uuid topic, int partition) {
                Map<Integer, String> holders = inverted.get(topic);
                return holders != null && holders.containsKey(partition);
            }
            public boolean isPartitionAssignable(Uuid topic, int partition) { return true; }
            public MemberSubscription memberSubscription(String member) { return subscriptions.get(member); }
            public MemberAssignment memberAssignment(String member) {
                return () -> held.getOrDefault(member, Collections.emptyMap());
            }
        };
    }

    /** A lag like the Python file's. */
    static long lag(int t, int p) {
        long x = t * 1000003L + p;
        x = (x ^ (x >>> 31)) * 0x7FB5D329728EA185L;
        return (x ^ (x >>> 27)) >>> 44;
    }

    @SuppressWarnings("unchecked")
    private void lag() throws Exception {
        Rows rows = (result, digest) -> ((Map<String, List<TopicPartition>>) result)
            .forEach((m, list) -> list.forEach(tp -> digest.row(m, tp.topic(), tp.partition())));
        Map<String, List<String>> all = named(-1), left = named(members / 2);
        measure("lag", "first", () -> built(all, Map.of()), () -> lagBased(-1), rows);
        if (seconds > 0) measure("lag", "leave", () -> built(left, Map.of()), () -> lagBased(members / 2), rows);
    }

    /** KAFKA-5337's rule as a plain loop: most lag first, to the fewest partitions, then least lag, then least id. */
    private Map<String, List<TopicPartition>> lagBased(int gone) {
        Map<String, List<TopicPartition>> assignment = new HashMap<>();
        for (int m = 0; m < members; m++) if (m != gone) assignment.put(member(m), new ArrayList<>());
        for (int t = 0; t < topics; t++) {
            int code = t;
            List<String> users = new ArrayList<>();
            for (int m = 0; m < members; m++) if (m != gone && subscribes(m, t)) users.add(member(m));
            Map<String, Integer> counts = new HashMap<>();
            Map<String, Long> lags = new HashMap<>();
            for (String user : users) {
                counts.put(user, 0);
                lags.put(user, 0L);
            }
            List<Integer> order = new ArrayList<>();
            for (int p = 0; p < partitions; p++) order.add(p);
            order.sort(Comparator.comparingLong((Integer p) -> -lag(code, p)).thenComparing(p -> p));
            for (int p : order) {
                String least = Collections.min(users, (a, b) -> {
                    int by = Integer.compare(counts.get(a), counts.get(b));
                    if (by == 0) by = Long.compare(lags.get(a), lags.get(b));
                    return by == 0 ? a.compareTo(b) : by;
                });
                assignment.get(least).add(new TopicPartition(topic(t), p));
                counts.merge(least, 1, Integer::sum);
                lags.merge(least, lag(t, p), Long::sum);
            }
        }
        return assignment;
    }
}
