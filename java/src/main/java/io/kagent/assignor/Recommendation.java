package io.kagent.assignor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What an assignor needs of a recommendation, schema 1 ({@code kagent schema} prints the whole contract).
 *
 * <p>{@code assignment} is null where it is not given whole; times are ms since the epoch; {@code generation} is -1 where
 * it is not known; {@code topicIds} maps names to ids as Kafka prints them.
 */
record Recommendation(
    String id,
    String cluster,
    String group,
    String status,
    String resolution,
    boolean stale,
    long asOf,
    long validUntil,
    String feasible,
    String infeasibleBecause,
    List<Told> members,
    List<Move> moves,
    long moveCount,
    Map<String, List<Part<String>>> assignment,
    int generation,
    Map<String, Integer> counts,
    Map<String, String> topicIds
) {
    static final long SCHEMA = 1;
    private static final Set<String> STATUSES = Set.of("open", "updated", "superseded", "resolved");

    /** A member by its lasting name and the coordinator's id, which may be null. */
    record Told(String name, String memberId) {
    }

    /** {@code from} is null where nobody holds the partition now. */
    record Move(Part<String> part, String from, String to) {
    }

    /** Throws RuntimeException for whatever is no recommendation of this schema. */
    static Recommendation parse(String text) {
        Fields json = Fields.of(Json.parse(text));
        if (json.number("schema", SCHEMA) != SCHEMA) {
            throw new IllegalArgumentException("a newer schema");
        }
        if (!STATUSES.contains(json.string("status"))) {
            throw new IllegalArgumentException("a status of a newer version");
        }
        Fields basis = json.object("basis");
        Fields follow = json.objects("actions").stream()
            .filter(action -> action.string("type").equals("follow_plan"))
            .findFirst()
            .orElse(Fields.NONE);
        List<Move> moves = moves(json);
        return new Recommendation(
            json.string("id"),
            json.string("cluster"),
            json.string("group"),
            json.string("status"),
            json.optional("resolution"),
            json.flag("stale"),
            json.number("as_of"),
            json.number("valid_until"),
            follow.optional("feasible"),
            follow.optional("reason"),
            members(json),
            moves,
            json.number("move_count", 0),
            assignment(json),
            (int) basis.number("generation", Member.UNKNOWN_GENERATION),
            basis.numbers("partitions"),
            json.strings("topic_ids"));
    }

    /** Whether nobody can follow it any more: it then needs no memory. */
    boolean over() {
        return status.equals("resolved") && !"followed".equals(resolution);
    }

    private static List<Told> members(Fields json) {
        return json.objects("members").stream()
            .map(member -> new Told(member.string("member"), member.optional("member_id")))
            .toList();
    }

    private static List<Move> moves(Fields json) {
        return json.objects("moves").stream()
            .map(move -> new Move(
                new Part<>(move.string("topic"), Math.toIntExact(move.number("partition"))),
                move.optional("from"),
                move.string("to")))
            .toList();
    }

    private static Map<String, List<Part<String>>> assignment(Fields json) {
        Map<String, Object> told = json.map("assignment");
        if (told == null) {
            return null;
        }
        Map<String, List<Part<String>>> out = new LinkedHashMap<>();
        told.forEach((member, pairs) -> out.put(member, parts((List<?>) pairs)));
        return out;
    }

    private static List<Part<String>> parts(List<?> pairs) {
        List<Part<String>> out = new ArrayList<>(pairs.size());
        for (Object pair : pairs) {
            List<?> topicAndNumber = (List<?>) pair;
            out.add(new Part<>(
                (String) topicAndNumber.get(0),
                Math.toIntExact((Long) topicAndNumber.get(1))));
        }
        return out;
    }
}
