package io.kagent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The broker-side assignor gives the plan to the letter, or leaves everything to uniform. */
class BrokerSideTest {
    private final FixedSource source = new FixedSource(Scene.NOW_MS - 1_000);
    private Scene scene;
    private BrokerSide side;

    @BeforeEach
    void aSkewedGroup() {
        scene = Scene.of(3, 1, 6).give("m0", "t0", 0, 1).give("m1", "t0", 2, 3).give("m2", "t0", 4, 5);
        side = side("follow");
    }

    private BrokerSide side(String apply) {
        return new BrokerSide(Settings.of(Map.of("kagent.apply", apply)), source, () -> Scene.NOW_MS);
    }

    private GroupAssignment assigned() {
        return side.planned(scene.spec(), scene.describer());
    }

    private Map<String, Map<Uuid, Set<Integer>>> plan() {
        Uuid topic = scene.ids.get("t0");
        return Map.of("m0", Map.of(topic, Set.of(0)), "m1", Map.of(topic, Set.of(1, 2, 3)), "m2", Map.of(topic, Set.of(4, 5)));
    }

    private void advised(String more) {
        source.recommended("main/g", scene.recommendation(plan(), more));
    }

    private Reason reason() {
        Map<String, Long> reasons = side.stats().getReasons();
        return EnumSet.allOf(Reason.class).stream().filter(r -> reasons.get(r.label()) > 0).findFirst().orElseThrow();
    }

    private static Map<String, Map<Uuid, Set<Integer>>> placed(GroupAssignment given) {
        Map<String, Map<Uuid, Set<Integer>>> out = new HashMap<>();
        given.members().forEach((id, assignment) -> out.put(id, assignment.partitions()));
        return out;
    }

    @Test
    void aPlanAboutExactlyThisGroupIsFollowedToTheLetter() {
        advised("");
        assertEquals(plan(), placed(assigned()));
        assertEquals(1, side.stats().getFollowed());
    }

    @Test
    void aDryRunCountsAndLeavesTheGroupToUniform() {
        advised("");
        side = side("dry");
        assertNull(assigned());
        assertEquals(1, side.stats().getFollowed());
    }

    @Test
    void switchedOffNothingIsRead() {
        advised("");
        side = side("off");
        assertNull(assigned());
        assertEquals(Reason.OFF, reason());
        assertTrue(!source.asked);
    }

    @Test
    void aTypingErrorInTheSwitchNeverFollows() {
        assertEquals(Mode.OFF, Mode.of("folow"));
        assertEquals(Mode.DRY, Mode.of(null));
    }

    @Test
    void theMemberThatMovesTheEpochGetsNothingAndEndsNothing() {
        advised("");
        scene.topics.put("nudge", Set.of());
        scene.held.put("nudge", Map.of());
        Map<String, Map<Uuid, Set<Integer>>> expected = new HashMap<>(plan());
        expected.put("nudge", Map.of());
        GroupAssignment given = assigned();
        assertEquals(expected, placed(given));
        scene.holds(given);
        scene.topics.remove("nudge");
        scene.held.remove("nudge");
        assertEquals(plan(), placed(assigned()));
        assertEquals(1, side.stats().getKept());
    }

    @Test
    void aFollowedPlanIsKeptWhenTheRecommendationIsGone() {
        advised("");
        scene.holds(assigned());
        source.recommended("main/g", null);
        source.muted("main/g", "{\"until\": " + Long.MAX_VALUE + "}");
        assertEquals(plan(), placed(assigned()));
    }

    @Test
    void aFollowedPlanIsKeptByACoordinatorThatDidNotFollowIt() {
        advised("");
        scene.holds(assigned());
        source.recommended("main/g", "{\"schema\":1,\"id\":\"i1\",\"cluster\":\"main\",\"group\":\"g\","
            + "\"status\":\"resolved\",\"resolution\":\"followed\",\"as_of\":2,\"valid_until\":3}");
        side = side("follow");
        assertEquals(plan(), placed(assigned()));
        assertEquals(1, side.stats().getKept());
    }

    @Test
    void aFollowedPlanEndsWithAnotherMembershipSubscriptionOrPartition() {
        advised("");
        GroupAssignment given = assigned();
        scene.holds(given);
        scene.member("m3");
        assertNull(assigned());
        scene.topics.remove("m3");
        scene.held.remove("m3");
        assertNotNull(assigned());
        scene.counts.put(scene.ids.get("t0"), 7);
        assertNull(assigned());
        scene.counts.put(scene.ids.get("t0"), 6);
        scene.topics.put("m1", Set.of());
        assertNull(assigned());
    }

    @Test
    void aStaticMemberThatCameBackWithAnotherIdKeepsItsPart() {
        scene.instances.put("m2", "static-2");
        advised("");
        scene.holds(assigned());
        scene.topics.put("m9", scene.topics.remove("m2"));
        scene.held.put("m9", scene.held.remove("m2"));
        scene.instances.put("m9", "static-2");
        assertEquals(plan().get("m2"), placed(assigned()).get("m9"));
    }

    @Test
    void everyReasonToRefuseIsNamed() {
        Map<String, Reason> fields = new HashMap<>();
        fields.put("\"status\":\"resolved\"", Reason.NOTHING_OPEN);
        fields.put("\"status\":\"superseded\"", Reason.SUPERSEDED);
        fields.put("\"stale\":true", Reason.BLIND);
        fields.put("\"cluster\":\"other\"", Reason.OTHER_CLUSTER);
        fields.put("\"group\":\"other\"", Reason.OTHER_GROUP);
        fields.put("\"valid_until\":" + Scene.NOW_MS, Reason.EXPIRED);
        fields.put("\"actions\":[]", Reason.INFEASIBLE);
        fields.put("\"assignment\":null", Reason.NO_PLAN);
        fields.put("\"members\":[{\"member\":\"m0/h\",\"member_id\":\"m0\"}]", Reason.OTHER_MEMBERS);
        fields.put("\"basis\":{\"partitions\":{\"t0\":7}}", Reason.OTHER_COUNTS);
        fields.put("\"topic_ids\":{}", Reason.NO_TOPIC_IDS);
        fields.put("\"topic_ids\":{\"t0\":\"no id\"}", Reason.NO_TOPIC_IDS);
        fields.put("\"topic_ids\":{\"t0\":\"AAAAAAAAAAAAAAAAAAAAAQ\"}", Reason.OTHER_COUNTS);
        fields.put("\"moves\":[{\"topic\":\"t0\",\"partition\":0,\"from\":null,\"to\":\"m0/h\"}],\"move_count\":1",
            Reason.OTHER_HOLDINGS);
        fields.forEach((more, reason) -> {
            side = side("follow");
            advised(more);
            assertNull(assigned(), more);
            assertEquals(reason, reason(), more);
            source.recommended("main/g", null);
        });
    }

    @Test
    void whatWasReadLongAgoOrNeverOrIsMutedIsRefused() {
        advised("");
        source.readAtMs = -1;
        assertNull(assigned());
        assertEquals(Reason.UNREACHABLE, reason());
        source.readAtMs = Scene.NOW_MS - 60_001;
        side = side("follow");
        assertNull(assigned());
        assertEquals(Reason.STALE, reason());
        source.readAtMs = Scene.NOW_MS;
        source.muted("main/g", "what?");
        side = side("follow");
        assertNull(assigned());
        assertEquals(Reason.MUTED, reason());
    }

    @Test
    void twoRecommendationsThatNameTheSameMembersCancelEachOther() {
        advised("");
        source.recommended("main/forged", scene.recommendation(plan(), "\"group\":\"forged\""));
        assertNull(assigned());
        assertEquals(Reason.AMBIGUOUS, reason());
        source.recommended("main/forged", null);
        assertNotNull(assigned());
    }

    @Test
    void forTenThousandRandomGroupsItGivesThePlanOrExactlyWhatUniformGives() {
        Random dice = new Random(20_260_101);
        int followed = 0;
        for (int round = 0; round < 10_000; round++) {
            scene = Scene.of(1 + dice.nextInt(6), 1 + dice.nextInt(3), 1 + dice.nextInt(8)).dealt(dice);
            side = side("follow");
            Scene target = Scene.of(scene.topics.size(), scene.ids.size(), scene.counts.values().iterator().next()).dealt(dice);
            source.recommended("main/g", scene.recommendation(target.held, spoiled(dice)));
            if (dice.nextBoolean()) {
                spoil(dice);
            }
            GroupAssignment given = new KagentAssignorOf(side).assign(scene);
            if (side.stats().getFollowed() > 0) {
                followed++;
                assertEquals(without(target.held), without(placed(given)));
            } else {
                GroupAssignment uniform = new UniformAssignor().assign(scene.spec(), scene.describer());
                assertEquals(placed(uniform), placed(given));
            }
        }
        assertTrue(followed > 1_000, followed + " followed");
        assertTrue(followed < 6_000, followed + " followed");
    }

    private static Map<String, Map<Uuid, Set<Integer>>> without(Map<String, Map<Uuid, Set<Integer>>> held) {
        Map<String, Map<Uuid, Set<Integer>>> out = new HashMap<>(held);
        out.values().removeIf(Map::isEmpty);
        return out;
    }

    private static String spoiled(Random dice) {
        List<String> fields = List.of("", "", "", "", "\"status\":\"resolved\"", "\"stale\":true", "\"cluster\":\"x\"",
            "\"valid_until\":1", "\"actions\":[]", "\"move_count\":99", "\"assignment\":{}", "\"topic_ids\":{}");
        return fields.get(dice.nextInt(fields.size()));
    }

    private void spoil(Random dice) {
        List<String> members = new ArrayList<>(scene.topics.keySet());
        String one = members.get(dice.nextInt(members.size()));
        switch (dice.nextInt(4)) {
            case 0 -> scene.member("late");
            case 1 -> scene.counts.merge(scene.ids.get("t0"), 1, Integer::sum);
            case 2 -> scene.topics.put(one, new HashSet<>(List.of(scene.ids.get("t0"))));
            default -> {
                scene.topics.put("m99", scene.topics.remove(one));
                scene.held.put("m99", scene.held.remove(one));
            }
        }
    }

    /** The assignor over a side made by a test, as KagentAssignor is over the shared one. */
    private record KagentAssignorOf(BrokerSide side) {
        GroupAssignment assign(Scene scene) {
            GroupAssignment planned = side.planned(scene.spec(), scene.describer());
            return planned != null ? planned : new UniformAssignor().assign(scene.spec(), scene.describer());
        }
    }

    @Test
    void aMemberAssignmentComparesAsKafkasOwn() {
        Map<Uuid, Set<Integer>> some = Map.of(scene.ids.get("t0"), Set.of(1));
        MemberAssignment one = new BrokerSide.Given(some);
        assertEquals(one, new BrokerSide.Given(Map.copyOf(some)));
        assertNotEquals(one, new BrokerSide.Given(Map.of()));
    }
}
