package io.kagent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Java decides as {@code kagent.follow} does; {@code tests/java/test_vectors.py} made the file with it. */
class VectorsTest {
    private static final Rules RULES = new Rules(Mode.FOLLOW, "main", "billing", 60_000, true);

    @TestFactory
    Stream<DynamicTest> decidesAsPythonDoes() throws IOException {
        try (BufferedReader file = new BufferedReader(new InputStreamReader(
            VectorsTest.class.getResourceAsStream("/follow-vectors.jsonl"), StandardCharsets.UTF_8))) {
            List<String> lines = file.lines().toList();
            return lines.stream().map(line -> Fields.of(Json.parse(line)))
                .map(asked -> dynamicTest(asked.string("name"), () -> check(asked)));
        }
    }

    private static void check(Fields asked) {
        FixedSource source = new FixedSource(asked.number("read_at_ms"));
        source.recommended("main/billing", asked.optional("recommendation"));
        if (asked.number("muted_until_ms") > 0) {
            source.muted("main/billing", "{\"until\": " + asked.number("muted_until_ms") + "}");
        }
        Group<String> group = Group.of(
            asked.objects("members").stream().map(VectorsTest::member).toList(), asked.numbers("counts"));
        Decision<String> decision = new Decider<>(new KeptPlans<String>()).decide(
            group, source.board.of("main/billing"), source.readAtMs, asked.number("now_ms"), RULES, name -> name);
        assertEquals(asked.string("reason"), decision.reason().label(), decision.sentence());
        assertEquals(placed(asked), decision.placed() == null ? null : sets(decision.placed()));
    }

    private static Member<String> member(Fields json) {
        Set<String> topics = new HashSet<>();
        ((List<?>) json.map().get("topics")).forEach(topic -> topics.add((String) topic));
        return new Member<>(json.string("id"), json.optional("instance_id"), topics,
            new HashSet<>(parts(json.map().get("held"))), (int) json.number("generation"));
    }

    private static List<Part<String>> parts(Object pairs) {
        List<Part<String>> out = new ArrayList<>();
        for (Object pair : (List<?>) pairs) {
            List<?> both = (List<?>) pair;
            out.add(new Part<>((String) both.get(0), ((Long) both.get(1)).intValue()));
        }
        return out;
    }

    private static Map<String, Set<Part<String>>> placed(Fields asked) {
        if (asked.map("placed") == null) {
            return null;
        }
        Map<String, Set<Part<String>>> out = new HashMap<>();
        asked.map("placed").forEach((id, pairs) -> out.put(id, new HashSet<>(parts(pairs))));
        return out;
    }

    private static Map<String, Set<Part<String>>> sets(Map<String, List<Part<String>>> placed) {
        Map<String, Set<Part<String>>> out = new HashMap<>();
        placed.forEach((id, parts) -> out.put(id, new HashSet<>(parts)));
        return out;
    }
}
