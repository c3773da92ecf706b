package io.kagent.assignor;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The client-side assignor {@code kagent} for the classic protocol, cooperative and eager: kagent's open plan for the group,
 * or exactly what the cooperative-sticky assignor gives.
 *
 * <p>For {@code partition.assignment.strategy} of every member. kagent's topics are read from the consumer's own cluster with
 * its own security, unless {@code kagent.bootstrap.servers} names another; {@link Settings} has the rest. {@link #assign}
 * works on values alone. An application that polls {@link #rejoinIfPlanWaits} has plans taken up when they come; without
 * it they wait for the next rebalance.
 */
public final class KagentConsumerAssignor implements ConsumerPartitionAssignor, Configurable {
    public static final String NAME = "kagent";
    private static final Logger LOG = LoggerFactory.getLogger("io.kagent.assignor");
    private static final List<String> INHERITED =
        List.of(Settings.BOOTSTRAP, "security.", "sasl.", "ssl.", "client.dns.lookup");
    private static final Map<String, WeakReference<KagentConsumerAssignor>> BY_MEMBER = new ConcurrentHashMap<>();

    private static final Decision<String> LATCHED = Decision.builtIn(
        Reason.LATCHED, "following is latched off after too many rebalances in a day");

    private final CooperativeStickyAssignor builtIn = new CooperativeStickyAssignor();
    private final Decider<String> decider = new Decider<>(new KeptPlans<>());
    private final Asking asking = new Asking();
    private final LongSupplier clockMs;
    private volatile Rules rules = new Rules(Mode.OFF, "main", "", 0, true);
    private volatile Source source;
    private volatile AssignorStats stats;
    private volatile MemberNote note = MemberNote.NONE;
    private volatile Group<String> led;
    private String memberId;

    public KagentConsumerAssignor() {
        this(System::currentTimeMillis);
    }

    KagentConsumerAssignor(LongSupplier clockMs) {
        this.clockMs = clockMs;
    }

    @Override
    public void configure(Map<String, ?> configs) {
        Settings settings = inherited(configs);
        Object group = configs.get("group.id");
        if (group == null || settings.mode() == Mode.OFF) {
            return;
        }
        String key = settings.cluster() + "/" + group;
        // The thread ends when the consumer is gone: assignors are not closed with it.
        WeakReference<KagentConsumerAssignor> self = new WeakReference<>(this);
        TopicReader reader = new TopicReader(settings, key::equals, () -> self.get() != null);
        use(settings, group.toString(), reader);
        stats.register("consumer");
        reader.startNow();
    }

    void use(Settings settings, String group, Source from) {
        rules = new Rules(settings.mode(), settings.cluster(), group, settings.maxAgeMs(), true);
        stats = new AssignorStats(settings.mode(), from);
        source = from;
    }

    private static Settings inherited(Map<String, ?> configs) {
        Settings own = Settings.of(configs);
        if (own.hasAddress()) {
            return own;
        }
        Map<String, Object> base = new HashMap<>();
        configs.forEach((name, value) -> {
            if (INHERITED.stream().anyMatch(name::startsWith)) {
                base.put(name, value);
            }
        });
        return own.over(base);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return builtIn.supportedProtocols();
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        led = null;
        return new MemberNote(note.generation(), asking.asked(), note.given()).written();
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        builtIn.onAssignment(assignment, metadata);
        Set<Part<String>> given = new HashSet<>();
        assignment.partitions().forEach(tp -> given.add(new Part<>(tp.topic(), tp.partition())));
        note = new MemberNote(metadata.generationId(), List.of(), given);
        synchronized (this) {
            if (memberId != null) {
                BY_MEMBER.remove(memberId);
            }
            memberId = metadata.memberId();
            BY_MEMBER.put(memberId, new WeakReference<>(this));
        }
        Group<String> leads = led;
        if (leads != null) {
            led = at(leads, metadata.generationId());
        }
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription subscription) {
        Map<String, Subscription> members = subscription.groupSubscription();
        GroupAssignment given = planned(metadata, members);
        if (given == null) {
            given = builtIn.assign(metadata, new GroupSubscription(forBuiltIn(members)));
        }
        try {
            led = led(metadata, members, given);
        } catch (RuntimeException error) {
            stats.failed(error);
        }
        return given;
    }

    /** The plan, or null: the built-in assignor decides. Never throws and never waits. */
    private GroupAssignment planned(Cluster metadata, Map<String, Subscription> members) {
        if (source == null) {
            return null;
        }
        try {
            long began = System.nanoTime();
            Group<String> group = group(metadata, members);
            members.values().forEach(
                said -> asking.heard(MemberNote.read(said.userData()).askedMs(), clockMs.getAsLong()));
            Decision<String> decision = asking.latched() ? LATCHED : decided(decider, group);
            stats.count(decision, System.nanoTime() - began);
            boolean follow = decision.placed() != null && rules.mode() == Mode.FOLLOW;
            return follow ? adjusted(members, decision.placed()) : null;
        } catch (Exception | LinkageError | StackOverflowError error) {
            stats.failed(error);
            return null;
        }
    }

    private Decision<String> decided(Decider<String> by, Group<String> group) {
        Standing standing = source.board().of(rules.cluster() + "/" + rules.group());
        return by.decide(group, standing, source.readAtMs(), clockMs.getAsLong(), rules, name -> name);
    }

    private static Group<String> group(Cluster metadata, Map<String, Subscription> members) {
        List<Member<String>> out = new ArrayList<>();
        Map<String, Integer> counts = new HashMap<>();
        members.forEach((id, said) -> {
            said.topics().forEach(topic -> counts.computeIfAbsent(topic, metadata::partitionCountForTopic));
            MemberNote note = MemberNote.read(said.userData());
            Set<Part<String>> held = said.ownedPartitions().isEmpty() ? note.given() : parts(said.ownedPartitions());
            int generation = said.generationId().orElse(note.generation());
            out.add(new Member<>(id, said.groupInstanceId().orElse(null), Set.copyOf(said.topics()), held, generation));
        });
        return Group.of(out, counts);
    }

    private static Set<Part<String>> parts(List<TopicPartition> partitions) {
        Set<Part<String>> out = new HashSet<>();
        partitions.forEach(tp -> out.add(new Part<>(tp.topic(), tp.partition())));
        return out;
    }

    /** What somebody else still owns is given out at the rebalance that follows its revocation (KIP-429). */
    private static GroupAssignment adjusted(Map<String, Subscription> members, Map<String, List<Part<String>>> placed) {
        Map<TopicPartition, String> owner = new HashMap<>();
        members.forEach((id, said) -> said.ownedPartitions().forEach(tp -> owner.put(tp, id)));
        Map<String, Assignment> out = new HashMap<>();
        placed.forEach((id, parts) -> {
            List<TopicPartition> given = new ArrayList<>();
            for (Part<String> part : parts) {
                TopicPartition tp = new TopicPartition(part.topic(), part.partition());
                if (owner.getOrDefault(tp, id).equals(id)) {
                    given.add(tp);
                }
            }
            out.put(id, new Assignment(given));
        });
        return new GroupAssignment(out);
    }

    /** The members as they would have joined with Kafka's own assignor. */
    private static Map<String, Subscription> forBuiltIn(Map<String, Subscription> members) {
        Map<String, Subscription> out = new HashMap<>();
        members.forEach((id, said) -> {
            ByteBuffer generation = ByteBuffer.allocate(Integer.BYTES);
            generation.putInt(MemberNote.read(said.userData()).generation()).flip();
            Subscription plain = said.generationId().isPresent()
                ? new Subscription(said.topics(), generation, said.ownedPartitions(), said.generationId().get(), said.rackId())
                : new Subscription(said.topics(), generation, said.ownedPartitions());
            said.groupInstanceId().ifPresent(instance -> plain.setGroupInstanceId(Optional.of(instance)));
            out.put(id, plain);
        });
        return out;
    }

    /** The group as it will stand after this assignment, to see whether a plan that comes later fits it. */
    private static Group<String> led(Cluster metadata, Map<String, Subscription> members, GroupAssignment given) {
        Group<String> before = group(metadata, members);
        List<Member<String>> after = new ArrayList<>();
        for (Member<String> member : before.members()) {
            Set<Part<String>> held = parts(given.groupAssignment().get(member.id()).partitions());
            after.add(new Member<>(member.id(), member.instanceId(), member.topics(), held, member.generation()));
        }
        return new Group<>(after, before.counts());
    }

    private static Group<String> at(Group<String> group, int generation) {
        List<Member<String>> members = new ArrayList<>();
        group.members().forEach(member -> members.add(new Member<>(
            member.id(), member.instanceId(), member.topics(), member.held(), generation)));
        return new Group<>(members, group.counts());
    }

    /**
     * Ask the group to rejoin if this consumer leads it and a plan waits: call it beside {@code poll}, from the same thread.
     * At most once in 15 minutes and three times a day for the group; after that it latches off until the consumer starts
     * anew.
     *
     * @return whether the group was asked
     */
    public static boolean rejoinIfPlanWaits(Consumer<?, ?> consumer) {
        WeakReference<KagentConsumerAssignor> found = BY_MEMBER.get(consumer.groupMetadata().memberId());
        KagentConsumerAssignor assignor = found == null ? null : found.get();
        if (assignor == null || !assignor.shouldRejoin()) {
            return false;
        }
        consumer.enforceRebalance("kagent: a plan waits");
        return true;
    }

    boolean shouldRejoin() {
        Group<String> group = led;
        if (group == null || source == null || rules.mode() != Mode.FOLLOW || asking.latched()) {
            return false;
        }
        // Asked of nobody's memory: only a rebalance follows.
        Decision<String> decision = decided(new Decider<>(new KeptPlans<>()), group);
        if (decision.reason() != Reason.FOLLOWED) {
            return false;
        }
        boolean may = asking.mayAsk(clockMs.getAsLong());
        if (asking.latched()) {
            LOG.error("kagent: the group was asked to rejoin three times in a day and would be again: "
                + "following is latched off until this consumer starts anew");
        }
        return may;
    }

    AssignorStats stats() {
        return stats;
    }
}
