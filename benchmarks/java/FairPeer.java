import com.cerner.common.kafka.consumer.assignors.FairAssignor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;

/** Cerner's FairAssignor, the published form of KIP-49, on the Kafka client that it was built for. */
final class FairPeer extends Harness {
    FairPeer(String[] args) {
        super(args);
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        FairPeer peer = new FairPeer(args);
        Rows rows = (result, digest) -> ((Map<String, List<TopicPartition>>) result)
            .forEach((m, list) -> list.forEach(tp -> digest.row(m, tp.topic(), tp.partition())));
        for (String phase : peer.seconds > 0 ? new String[] {"first", "leave"} : new String[] {"first"}) {
            Map<String, Subscription> group = new HashMap<>();
            for (int m = 0; m < peer.members; m++)
                if (phase.equals("first") || m != peer.members / 2)
                    group.put(member(m), new Subscription(peer.subscription(m)));
            Map<String, List<String>> named = new HashMap<>();
            group.forEach((m, subscription) -> named.put(m, subscription.topics()));
            Map<String, Integer> counts = peer.counts();
            Run build = () -> {
                Map<String, Subscription> made = new HashMap<>();
                named.forEach((m, topics) -> made.put(m, new Subscription(topics)));
                return made;
            };
            peer.measure("fair", phase, build, () -> new FairAssignor().assign(counts, group), rows);
        }
    }
}
