package io.kagent.assignor;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/** How long an assignment takes; {@code benchmarks/assignor.py} runs it. Prints name, median, p99 and greatest,
 * in ms of this thread's CPU time: what else the machine does says nothing of the code. */
public final class Speed {
    private static final int ROUNDS = 1_000;
    private static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    private Speed() {
    }

    public static void main(String[] args) {
        Scene usual = Scene.of(100, 10, 200).dealt(new Random(1));
        String plan = usual.recommendation(Scene.of(100, 10, 200).dealt(new Random(2)).held, "");
        FixedSource source = new FixedSource(Scene.NOW_MS).recommended("main/g", plan);
        GroupSpec spec = usual.spec();
        timed("broker side, 100 x 2000, followed", ROUNDS, () -> fresh(source).planned(spec, usual.describer()));
        client(usual, source);
        Scene large = Scene.of(1_000, 50, 1_000).dealt(new Random(3));
        GroupSpec largeSpec = large.spec();
        BrokerSide nothing = fresh(new FixedSource(Scene.NOW_MS));
        String other = large.recommendation(Map.of(), "");
        BrokerSide refused = fresh(new FixedSource(Scene.NOW_MS).recommended("main/g", other));
        UniformAssignor uniform = new UniformAssignor();
        Map<String, Runnable> beside = new LinkedHashMap<>();
        beside.put("uniform, 1000 x 50000", () -> uniform.assign(largeSpec, large.describer()));
        beside.put("refused, nothing open, then uniform", () -> {
            nothing.planned(largeSpec, large.describer());
            uniform.assign(largeSpec, large.describer());
        });
        beside.put("refused, a plan that does not fit, then uniform", () -> {
            refused.planned(largeSpec, large.describer());
            uniform.assign(largeSpec, large.describer());
        });
        timed(beside, 300);
    }

    private static BrokerSide fresh(FixedSource source) {
        return new BrokerSide(Settings.of(Map.of("kagent.apply", "follow")), source, () -> Scene.NOW_MS);
    }

    private static void client(Scene scene, FixedSource source) {
        Map<String, Subscription> members = new HashMap<>();
        scene.held.forEach((id, held) -> {
            List<TopicPartition> owned = new ArrayList<>();
            scene.ids.forEach((name, topic) -> held.getOrDefault(topic, Set.of())
                .forEach(number -> owned.add(new TopicPartition(name, number))));
            members.put(id, new Subscription(List.copyOf(scene.ids.keySet()), MemberNote.NONE.written(), owned));
        });
        Node node = new Node(1, "h", 1);
        List<PartitionInfo> infos = new ArrayList<>();
        scene.ids.forEach((name, id) -> {
            for (int p = 0; p < scene.counts.get(id); p++) {
                infos.add(new PartitionInfo(name, p, node, new Node[] {node}, new Node[] {node}));
            }
        });
        Cluster cluster = new Cluster("c", List.of(node), infos, Set.of(), Set.of());
        GroupSubscription group = new GroupSubscription(members);
        timed("client side, 100 x 2000, followed", ROUNDS, () -> {
            KagentConsumerAssignor assignor = new KagentConsumerAssignor(() -> Scene.NOW_MS);
            assignor.use(Settings.of(Map.of("kagent.apply", "follow")), "g", source);
            assignor.assign(cluster, group);
            if (assignor.stats().getFollowed() != 1) {
                throw new IllegalStateException("not followed: " + assignor.stats().getReasons());
            }
        });
    }

    private static void timed(String name, int rounds, Runnable work) {
        timed(Map.of(name, work), rounds);
    }

    /** Each once in every round: what slows the machine for a while slows all of them. */
    private static void timed(Map<String, Runnable> works, int rounds) {
        Map<String, double[]> ms = new LinkedHashMap<>();
        works.keySet().forEach(name -> ms.put(name, new double[rounds]));
        for (int round = -rounds / 4; round < rounds; round++) {
            for (Map.Entry<String, Runnable> work : works.entrySet()) {
                long began = CPU.getCurrentThreadCpuTime();
                work.getValue().run();
                if (round >= 0) {
                    ms.get(work.getKey())[round] = (CPU.getCurrentThreadCpuTime() - began) / 1e6;
                }
            }
        }
        ms.forEach(Speed::print);
    }

    private static void print(String name, double[] ms) {
        Arrays.sort(ms);
        int rounds = ms.length;
        System.out.printf("%-50s %8.2f %8.2f %8.2f%n", name, ms[rounds / 2], ms[(int) (rounds * 0.99)], ms[rounds - 1]);
    }
}
