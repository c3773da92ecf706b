package io.kagent.assignor;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.Configurable;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * The broker-side assignor {@code kagent} (KIP-848): kagent's open plan for the group, or exactly what {@code uniform} gives.
 *
 * <p>For {@code group.consumer.assignors}. {@link #assign} runs on the coordinator's thread: it only looks into memory. A
 * broker makes and configures several of these, so what is read, kept and counted is shared by all with the same settings.
 */
public final class KagentAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    public static final String NAME = "kagent";
    private static final Map<Settings, BrokerSide> SHARED = new ConcurrentHashMap<>();

    private final UniformAssignor uniform = new UniformAssignor();
    private volatile BrokerSide side;

    @Override
    public void configure(Map<String, ?> configs) {
        side = SHARED.computeIfAbsent(Settings.of(configs), BrokerSide::started);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) throws PartitionAssignorException {
        BrokerSide known = side;
        GroupAssignment planned = known == null ? null : known.planned(spec, topics);
        return planned != null ? planned : uniform.assign(spec, topics);
    }
}
