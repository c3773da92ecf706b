package io.kagent.assignor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The fields of a JSON object; what has another type than asked for throws RuntimeException. */
record Fields(Map<String, Object> map) {
    static final Fields NONE = new Fields(Map.of());

    @SuppressWarnings("unchecked")
    static Fields of(Object json) {
        return new Fields((Map<String, Object>) json);
    }

    String string(String name) {
        return (String) Objects.requireNonNull(map.get(name), name);
    }

    String optional(String name) {
        return (String) map.get(name);
    }

    boolean flag(String name) {
        return Boolean.TRUE.equals(map.get(name));
    }

    long number(String name) {
        return (Long) Objects.requireNonNull(map.get(name), name);
    }

    long number(String name, long absent) {
        return map.get(name) == null ? absent : number(name);
    }

    /** Null where it is absent or null. */
    Map<String, Object> map(String name) {
        return map.get(name) == null ? null : of(map.get(name)).map();
    }

    Fields object(String name) {
        Map<String, Object> found = map(name);
        return found == null ? NONE : new Fields(found);
    }

    List<Fields> objects(String name) {
        List<Fields> out = new ArrayList<>();
        if (map.get(name) != null) {
            ((List<?>) map.get(name)).forEach(json -> out.add(of(json)));
        }
        return out;
    }

    Map<String, Integer> numbers(String name) {
        Map<String, Integer> out = new LinkedHashMap<>();
        object(name).map().forEach((key, value) -> out.put(key, Math.toIntExact((Long) value)));
        return out;
    }

    Map<String, String> strings(String name) {
        Map<String, String> out = new LinkedHashMap<>();
        object(name).map().forEach((key, value) -> out.put(key, (String) value));
        return out;
    }
}
