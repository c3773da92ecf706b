package io.kagent.assignor;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;

/**
 * What stands on kagent's topics, found by key or by member id. One thread writes, any may look.
 *
 * <p>A Standing is whole in itself, so a look between two writes sees the group before or after, never half.
 */
final class Board {
    /** Bytes of a message; longer ones are not looked into. */
    private static final int LARGEST = 4 * 1024 * 1024;
    private static final int MOST_GROUPS = 100_000;

    private final Map<String, Standing> byKey = new ConcurrentHashMap<>();
    private final Map<String, Set<String>> keysOfMember = new ConcurrentHashMap<>();
    private final Predicate<String> wanted;

    Board(Predicate<String> wanted) {
        this.wanted = wanted;
    }

    Standing of(String key) {
        return byKey.getOrDefault(key, Standing.empty(key));
    }

    int size() {
        return byKey.size();
    }

    /** What stands for the group that one of these members is in; empty where none is named. */
    Standing ofMembers(Collection<String> memberIds) throws Refused {
        for (String memberId : memberIds) {
            Set<String> keys = keysOfMember.get(memberId);
            if (keys != null) {
                return alone(keys);
            }
        }
        return Standing.empty("");
    }

    private Standing alone(Set<String> keys) throws Refused {
        Standing found = null;
        for (String key : keys) {
            if (found != null) {
                throw new Refused(Reason.AMBIGUOUS, "the recommendations of " + Text.shown(found.key()) + " and "
                    + Text.shown(key) + " name the same member");
            }
            found = of(key);
        }
        return found == null ? Standing.empty("") : found;
    }

    /** Take a record of the recommendations topic; a null value takes back what stood. */
    void recommended(String key, byte[] value) {
        if (!takes(key)) {
            return;
        }
        Recommendation read = null;
        boolean unreadable = false;
        if (value != null) {
            read = parsed(value);
            unreadable = read == null;
        }
        Standing before = of(key);
        put(before, before.recommended(read, unreadable));
    }

    /** Take a record of the mutes topic. */
    void muted(String key, byte[] value) {
        if (takes(key)) {
            Standing before = of(key);
            put(before, before.muted(mutedUntilMs(value)));
        }
    }

    private boolean takes(String key) {
        return key != null && wanted.test(key) && (byKey.containsKey(key) || byKey.size() < MOST_GROUPS);
    }

    private void put(Standing before, Standing after) {
        if (after.isEmpty()) {
            byKey.remove(after.key());
        } else {
            byKey.put(after.key(), after);
        }
        Set<String> old = memberIds(before);
        Set<String> now = memberIds(after);
        // The new ones first: a member in both is never without its key.
        now.forEach(id -> keysOfMember.merge(id, Set.of(after.key()), Board::union));
        old.removeAll(now);
        old.forEach(id -> keysOfMember.computeIfPresent(id, (member, keys) -> less(keys, after.key())));
    }

    private static Set<String> memberIds(Standing standing) {
        Set<String> ids = new LinkedHashSet<>();
        add(standing.recommendation(), ids);
        add(standing.lastPlan(), ids);
        return ids;
    }

    private static void add(Recommendation rec, Set<String> ids) {
        if (rec != null && !rec.over()) {
            rec.members().stream().map(Recommendation.Told::memberId).filter(Objects::nonNull).forEach(ids::add);
        }
    }

    private static Set<String> union(Set<String> some, Set<String> more) {
        Set<String> out = new LinkedHashSet<>(some);
        out.addAll(more);
        return out;
    }

    private static Set<String> less(Set<String> keys, String key) {
        Set<String> out = new LinkedHashSet<>(keys);
        out.remove(key);
        return out.isEmpty() ? null : out;
    }

    private static Recommendation parsed(byte[] value) {
        if (value.length > LARGEST) {
            return null;
        }
        try {
            return Recommendation.parse(new String(value, StandardCharsets.UTF_8));
        } catch (RuntimeException | StackOverflowError malformed) {
            return null;
        }
    }

    /** A mute that cannot be read holds until it is taken back. */
    private static long mutedUntilMs(byte[] value) {
        if (value == null) {
            return 0;
        }
        try {
            return Fields.of(Json.parse(new String(value, StandardCharsets.UTF_8))).number("until");
        } catch (RuntimeException malformed) {
            return Long.MAX_VALUE;
        }
    }
}
