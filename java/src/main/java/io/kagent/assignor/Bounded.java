package io.kagent.assignor;

import java.util.LinkedHashMap;
import java.util.Map;

/** A map that forgets what was not looked at for longest. Not thread-safe. */
final class Bounded<K, V> extends LinkedHashMap<K, V> {
    private static final long serialVersionUID = 1L;
    private final int most;

    Bounded(int most) {
        super(16, 0.75f, true);
        this.most = most;
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > most;
    }
}
