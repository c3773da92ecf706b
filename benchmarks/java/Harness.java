import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What both peers of benchmarks/assign.py share: the group (the same rule as in the Python file), the clock, the digest.
 *
 * Arguments: topics, partitions per topic, members, kind (same, halves, random), seconds per measurement, strategies.
 */
abstract class Harness {
    final int topics, partitions, members;
    final String kind;
    final double seconds;

    Harness(String[] args) {
        topics = Integer.parseInt(args[0]);
        partitions = Integer.parseInt(args[1]);
        members = Integer.parseInt(args[2]);
        kind = args[3];
        seconds = Double.parseDouble(args[4]);
    }

    /** One assignment: member → topic → partitions, each call from scratch. */
    interface Run {
        Object once() throws Exception;
    }

    /** Adds the rows of a result to a digest. */
    interface Rows {
        void each(Object result, Digest digest);
    }

    static String member(int m) {
        return String.format("consumer-%05d", m);
    }

    static String topic(int t) {
        return String.format("topic-%04d", t);
    }

    boolean subscribes(int m, int t) {
        switch (kind) {
            case "halves": return (m % 4 == 0) == (t < topics / 2);
            case "random": return (((m * 73856093L) ^ (t * 19349663L)) >> 7 & 1) == 0;
            default: return true;
        }
    }

    List<String> subscription(int m) {
        List<String> names = new ArrayList<>();
        for (int t = 0; t < topics; t++) if (subscribes(m, t)) names.add(topic(t));
        return names;
    }

    /** Counts rows without regard to their order, so that two programs can compare what they computed. */
    static final class Digest {
        long sum;

        void row(String member, String topic, int partition) {
            long x = (Long.parseLong(member.substring(9)) << 40) | (Long.parseLong(topic.substring(6)) << 20) | partition;
            x = (x ^ (x >>> 31)) * 0x7FB5D329728EA185L;
            x = (x ^ (x >>> 27)) * 0x81DADEF4BC2DD44DL;
            sum += x ^ (x >>> 33);
        }
    }

    /** What a member held, as a row has it: topic → partitions. */
    static Map<String, int[]> plain(Map<String, ? extends Collection<Integer>> held) {
        Map<String, int[]> plain = new HashMap<>();
        held.forEach((topic, ps) -> plain.put(topic, ps.stream().mapToInt(Integer::intValue).toArray()));
        return plain;
    }

    /** Nanoseconds of processor time of this thread: other programs on the machine do not count. */
    private static long used() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** Milliseconds of the best run. */
    double best(Run run) throws Exception {
        double best = Double.MAX_VALUE;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int runs = 0;
        do {
            long start = used();
            run.once();
            best = Math.min(best, (used() - start) / 1e6);
        } while (System.nanoTime() < end && ++runs < 200);
        return best;
    }

    /** Repeats until the time is used up; the best run counts, when the compiler has done its work. */
    Object measure(String strategy, String phase, Run build, Run run, Rows rows) throws Exception {
        double building = best(build);
        List<Double> times = new ArrayList<>();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        Object result = null;
        long peak = 0;
        do {
            result = null;
            System.gc();
            resetPeaks();
            long before = peaks();
            long start = used();
            result = run.once();
            times.add((used() - start) / 1e6);
            peak = Math.max(peak, peaks() - before);
        } while (System.nanoTime() < end && times.size() < 40);
        Digest digest = new Digest();
        rows.each(result, digest);
        System.out.printf("{\"strategy\": \"%s\", \"phase\": \"%s\", \"ms\": %.3f, \"building\": %.3f, \"mb\": %.1f, \"digest\": \"%d\", \"runs\": %d}%n",
            strategy, phase, Collections.min(times), building, peak / 1e6, digest.sum, times.size());
        return result;
    }

    private static void resetPeaks() {
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
            if (pool.getType() == MemoryType.HEAP) pool.resetPeakUsage();
    }

    private static long peaks() {
        long used = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
            if (pool.getType() == MemoryType.HEAP) used += pool.getPeakUsage().getUsed();
        return used;
    }

    Map<String, Integer> counts() {
        Map<String, Integer> counts = new HashMap<>();
        for (int t = 0; t < topics; t++) counts.put(topic(t), partitions);
        return counts;
    }
}
