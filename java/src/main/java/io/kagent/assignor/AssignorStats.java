package io.kagent.assignor;

import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;

import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts decisions, and logs each reason once for each recommendation. */
final class AssignorStats implements AssignorStatsMXBean {
    private static final Logger LOG = LoggerFactory.getLogger("io.kagent.assignor");
    private static final int REMEMBERED = 1_000;

    private final Mode mode;
    private final Source reader;
    private final Map<Reason, LongAdder> counts = new EnumMap<>(Reason.class);
    private final Set<String> logged = Collections.newSetFromMap(new Bounded<>(REMEMBERED));
    private volatile long lastDecisionNs;

    AssignorStats(Mode mode, Source reader) {
        this.mode = mode;
        this.reader = reader;
        for (Reason reason : Reason.values()) {
            counts.put(reason, new LongAdder());
        }
    }

    /** A second one of the same side, as tests have it in one process, is not registered. */
    void register(String side) {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            ObjectName name = new ObjectName("io.kagent:type=assignor,side=" + side);
            if (!server.isRegistered(name)) {
                server.registerMBean(this, name);
            }
        } catch (JMException | SecurityException error) {
            LOG.warn("The assignor's metrics cannot be registered: {}", error.getMessage());
        }
    }

    void count(Decision<?> decision, long tookNs) {
        counts.get(decision.reason()).increment();
        lastDecisionNs = tookNs;
        if (decision.reason() == Reason.OFF || !once(decision.about() + decision.reason())) {
            return;
        }
        String about = decision.about().isEmpty() ? "" : " (recommendation " + Text.shown(decision.about()) + ")";
        String dry = mode == Mode.DRY && decision.placed() != null ? "dry run, assigned by the built-in assignor: " : "";
        LOG.info("kagent: {}{}: {}{}", dry, decision.reason().label(), decision.sentence(), about);
    }

    private boolean once(String what) {
        synchronized (logged) {
            return logged.add(what);
        }
    }

    void failed(Throwable error) {
        counts.get(Reason.FAILED).increment();
        if (once("failed" + error.getClass())) {
            LOG.error("kagent: no decision could be made; the built-in assignor decides", error);
        }
    }

    @Override
    public String getMode() {
        return mode.name().toLowerCase(Locale.ROOT);
    }

    @Override
    public long getFollowed() {
        return counts.get(Reason.FOLLOWED).sum();
    }

    @Override
    public long getKept() {
        return counts.get(Reason.KEPT).sum();
    }

    @Override
    public long getRefused() {
        return counts.values().stream().mapToLong(LongAdder::sum).sum() - getFollowed() - getKept();
    }

    @Override
    public Map<String, Long> getReasons() {
        Map<String, Long> out = new TreeMap<>();
        counts.forEach((reason, count) -> out.put(reason.label(), count.sum()));
        return out;
    }

    @Override
    public long getReadAgeMs() {
        return reader.readAtMs() < 0 ? -1 : System.currentTimeMillis() - reader.readAtMs();
    }

    @Override
    public int getGroups() {
        return reader.board().size();
    }

    @Override
    public long getLastDecisionNs() {
        return lastDecisionNs;
    }
}
