package io.kagent.assignor;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * The {@code kagent.…} settings among a broker's or a consumer's. None of them can keep a broker from starting.
 *
 * <pre>
 * kagent.apply              dry (default): count only · follow · off; everything else is off
 * kagent.bootstrap.servers  of the cluster that holds kagent's topics; without it nothing is read
 * kagent.client.…           further settings of the consumer that reads them: TLS, SASL
 * kagent.cluster            the name under which kagent watches this cluster; main
 * kagent.topic.prefix       of kagent's topics; kagent-
 * kagent.max.age.ms         what was read longer ago is as good as nothing; 60000
 * </pre>
 */
record Settings(Mode mode, String cluster, String prefix, long maxAgeMs, Map<String, Object> client) {
    static final String BOOTSTRAP = "bootstrap.servers";
    private static final String OWN = "kagent.";
    private static final String CLIENT = "kagent.client.";
    private static final long MAX_AGE_MS = 60_000;

    static Settings of(Map<String, ?> configs) {
        return new Settings(
            Mode.of(configs.get("kagent.apply")),
            text(configs, "kagent.cluster", "main"),
            text(configs, "kagent.topic.prefix", "kagent-"),
            positive(configs.get("kagent.max.age.ms")),
            client(configs));
    }

    /** For the thread's client: what is kagent's own, over what {@code base} has. */
    Settings over(Map<String, ?> base) {
        Map<String, Object> merged = new TreeMap<>();
        base.forEach((name, value) -> {
            if (!name.startsWith(OWN) && value != null) {
                merged.put(name, value);
            }
        });
        merged.putAll(client);
        return new Settings(mode, cluster, prefix, maxAgeMs, merged);
    }

    boolean hasAddress() {
        return client.get(BOOTSTRAP) != null && !client.get(BOOTSTRAP).toString().isBlank();
    }

    String recommendations() {
        return prefix + "recommendations";
    }

    String mutes() {
        return prefix + "mutes";
    }

    private static Map<String, Object> client(Map<String, ?> configs) {
        Map<String, Object> out = new HashMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith(CLIENT) && value != null) {
                out.put(name.substring(CLIENT.length()), value);
            }
        });
        if (configs.get(OWN + BOOTSTRAP) != null) {
            out.put(BOOTSTRAP, configs.get(OWN + BOOTSTRAP));
        }
        return out;
    }

    private static String text(Map<String, ?> configs, String name, String absent) {
        Object said = configs.get(name);
        return said == null || said.toString().isBlank() ? absent : said.toString().trim();
    }

    private static long positive(Object said) {
        try {
            return said == null ? MAX_AGE_MS : Math.max(1, Long.parseLong(said.toString().trim()));
        } catch (NumberFormatException error) {
            return MAX_AGE_MS;
        }
    }
}
