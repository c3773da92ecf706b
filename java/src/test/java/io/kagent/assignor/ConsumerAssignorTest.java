package io.kagent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupAssignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The client-side assignor gives the plan to the letter, or exactly what cooperative-sticky gives. */
class ConsumerAssignorTest {
    private static final int GENERATION = 3;
    private int generation = GENERATION;
    private final FixedSource source = new FixedSource(Scene.NOW_MS - 1_000);
    private long nowMs = Scene.NOW_MS;
    private Scene scene;
    private KagentConsumerAssignor assignor;

    @BeforeEach
    void aSkewedGroup() {
        scene = Scene.of(3, 1, 6).give("m0", "t0", 0, 1).give("m1", "t0", 2, 3).give("m2", "t0", 4, 5);
        assignor = assignor("follow");
    }

    private KagentConsumerAssignor assignor(String apply) {
        KagentConsumerAssignor made = new KagentConsumerAssignor(() -> nowMs);
        made.use(Settings.of(Map.of("kagent.apply", apply)), "g", source);
        return made;
    }

    private static Cluster cluster(int topics, int partitions) {
        List<PartitionInfo> infos = new ArrayList<>();
        Node node = new Node(1, "h", 1);
        for (int t = 0; t < topics; t++) {
            for (int p = 0; p < partitions; p++) {
                infos.add(new PartitionInfo("t" + t, p, node, new Node[] {node}, new Node[] {node}));
            }
        }
        return new Cluster("c", List.of(node), infos, Set.of(), Set.of());
    }

    private Subscription joins(List<TopicPartition> owned, int generation, MemberNote note) {
        List<String> topics = new ArrayList<>(scene.ids.keySet());
        return new Subscription(topics, note.written(), owned, generation, Optional.empty());
    }

    /** What the members hold by the scene, under the cooperative protocol. */
    private Map<String, Subscription> cooperative() {
        Map<String, Subscription> out = new TreeMap<>();
        scene.held.forEach((id, held) -> out.put(id, joins(owned(id), generation, MemberNote.NONE)));
        return out;
    }

    private List<TopicPartition> owned(String id) {
        List<TopicPartition> out = new ArrayList<>();
        scene.ids.forEach((name, topic) -> scene.held.get(id).getOrDefault(topic, Set.of())
            .forEach(number -> out.add(new TopicPartition(name, number))));
        return out;
    }

    private Map<String, Set<Integer>> assigned(Map<String, Subscription> members) {
        GroupAssignment given = assignor.assign(cluster(1, 6), new GroupSubscription(members));
        Map<String, Set<Integer>> out = new HashMap<>();
        given.groupAssignment().forEach((id, assignment) -> {
            assertNull(assignment.userData());
            Set<Integer> numbers = new HashSet<>();
            assignment.partitions().forEach(tp -> numbers.add(tp.partition()));
            out.put(id, numbers);
        });
        return out;
    }

    private void advised(String more) {
        var topic = scene.ids.get("t0");
        source.recommended("main/g", scene.recommendation(Map.of(
            "m0", Map.of(topic, Set.of(0)), "m1", Map.of(topic, Set.of(1, 2, 3)), "m2", Map.of(topic, Set.of(4, 5))), more));
    }

    @Test
    void cooperativelyOnlyTheMovedPartitionIsRevokedFirstAndThenGivenOut() {
        advised("");
        assertEquals(Map.of("m0", Set.of(0), "m1", Set.of(2, 3), "m2", Set.of(4, 5)), assigned(cooperative()));
        scene.held.get("m0").get(scene.ids.get("t0")).remove(1);
        assertEquals(Map.of("m0", Set.of(0), "m1", Set.of(1, 2, 3), "m2", Set.of(4, 5)), assigned(cooperative()));
        assertEquals(1, assignor.stats().getKept());
    }

    @Test
    void anotherLeaderFinishesAndKeepsThePlan() {
        advised("");
        assigned(cooperative());
        scene.held.get("m0").get(scene.ids.get("t0")).remove(1);
        assignor = assignor("follow");
        generation++;
        assertEquals(Set.of(1, 2, 3), assigned(cooperative()).get("m1"));
    }

    @Test
    void eagerlyThePlanIsGivenOutAtOnce() {
        advised("");
        Map<String, Subscription> members = new TreeMap<>();
        scene.held.keySet().forEach(id -> {
            Set<Part<String>> given = new HashSet<>();
            owned(id).forEach(tp -> given.add(new Part<>(tp.topic(), tp.partition())));
            members.put(id, joins(List.of(), GENERATION, new MemberNote(GENERATION, List.of(), given)));
        });
        assertEquals(Map.of("m0", Set.of(0), "m1", Set.of(1, 2, 3), "m2", Set.of(4, 5)), assigned(members));
    }

    @Test
    void aDryRunOrARefusalIsCooperativeStickyToTheLetter() {
        Random dice = new Random(7);
        for (int round = 0; round < 500; round++) {
            scene = Scene.of(1 + dice.nextInt(5), 1, 1 + dice.nextInt(9)).dealt(dice);
            int partitions = scene.counts.values().iterator().next();
            assignor = assignor(round % 2 == 0 ? "dry" : "follow");
            source.recommended("main/g", scene.recommendation(scene.held, ""));
            Map<String, Subscription> members = cooperative();
            GroupAssignment given = assignor.assign(cluster(1, partitions), new GroupSubscription(members));
            Map<String, Subscription> plain = new HashMap<>();
            members.forEach((id, said) -> plain.put(id, new Subscription(
                said.topics(), generation(), said.ownedPartitions(), GENERATION, Optional.empty())));
            GroupAssignment usual = new CooperativeStickyAssignor().assign(cluster(1, partitions), new GroupSubscription(plain));
            assertEquals(partitions(usual), partitions(given));
        }
    }

    private static ByteBuffer generation() {
        return ByteBuffer.allocate(4).putInt(GENERATION).flip();
    }

    private static Map<String, List<TopicPartition>> partitions(GroupAssignment given) {
        Map<String, List<TopicPartition>> out = new HashMap<>();
        given.groupAssignment().forEach((id, assignment) -> out.put(id, assignment.partitions()));
        return out;
    }

    @Test
    @SuppressWarnings("removal")
    void aLeaderAsksOnceACooldownAndThreeTimesADayThenLatchesOff() {
        int asked = 0;
        for (int round = 0; round < 5; round++) {
            source.recommended("main/g", null);
            assignor.subscriptionUserData(Set.of("t0"));
            assigned(cooperative());
            assignor.onAssignment(new Assignment(owned("m0")), new ConsumerGroupMetadata("g", GENERATION, "m0", Optional.empty()));
            assertFalse(assignor.shouldRejoin());
            advised("\"valid_until\":" + (nowMs + 60_000));
            source.readAtMs = nowMs;
            asked += assignor.shouldRejoin() ? 1 : 0;
            assertFalse(assignor.shouldRejoin());
            nowMs += 900_000;
        }
        assertEquals(3, asked);
        advised("\"valid_until\":" + (nowMs + 60_000));
        source.readAtMs = nowMs;
        assigned(cooperative());
        assertTrue(assignor.stats().getReasons().get("latched") > 0);
    }

    @Test
    void aNoteReadsAsItWasWrittenAndForeignBytesSayNothing() {
        MemberNote note = new MemberNote(9, List.of(1L, 2L), Set.of(new Part<>("töpic", 3), new Part<>("u", 0)));
        assertEquals(note, MemberNote.read(note.written()));
        assertEquals(MemberNote.NONE, MemberNote.read(null));
        assertEquals(MemberNote.NONE, MemberNote.read(ByteBuffer.wrap(new byte[] {0, 0, 0, 1})));
        Random dice = new Random(1);
        byte[] bytes = note.written().array();
        for (int round = 0; round < 1_000; round++) {
            byte[] spoiled = bytes.clone();
            spoiled[dice.nextInt(spoiled.length)] ^= (byte) (1 + dice.nextInt(255));
            MemberNote.read(ByteBuffer.wrap(spoiled, 0, dice.nextInt(spoiled.length + 1)));
        }
    }
}
