package io.kagent.assignor;

import java.util.Collection;
import java.util.List;
import java.util.TreeSet;

/** When a group may be asked to rejoin: once per cooldown, three times in 24 hours, and then never again. Thread-safe. */
final class Asking {
    private static final long COOLDOWN_MS = 900_000;
    private static final long DAY_MS = 86_400_000;
    private static final long CLOCKS_DIFFER_MS = 300_000;
    private static final int PER_DAY = 3;

    private final TreeSet<Long> askedMs = new TreeSet<>();
    private boolean latched;

    synchronized List<Long> asked() {
        return List.copyOf(askedMs);
    }

    /** What other members remember; times that cannot be are left out. */
    synchronized void heard(Collection<Long> timesMs, long nowMs) {
        timesMs.stream().filter(ms -> ms > nowMs - DAY_MS && ms <= nowMs + CLOCKS_DIFFER_MS).forEach(askedMs::add);
    }

    synchronized boolean latched() {
        return latched;
    }

    /** Whether to ask now; if so, it counts as asked. */
    synchronized boolean mayAsk(long nowMs) {
        askedMs.headSet(nowMs - DAY_MS, true).clear();
        if (latched || (!askedMs.isEmpty() && nowMs - askedMs.last() < COOLDOWN_MS)) {
            return false;
        }
        if (askedMs.size() >= PER_DAY) {
            latched = true;
            return false;
        }
        return askedMs.add(nowMs);
    }
}
