package io.kagent.assignor;

import java.util.Map;

import org.apache.kafka.common.Configurable;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * {@link KagentAssignor} under the name {@code uniform}, to be listed instead of Kafka's own of that name.
 *
 * <p>It reaches groups whose members cannot name {@code kagent}: franz-go's sticky balancers always name {@code uniform}, and
 * a coordinator takes the assignor that most members name. Groups without a plan get exactly what they got before.
 */
public final class KagentUniformAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    private final KagentAssignor kagent = new KagentAssignor();

    @Override
    public void configure(Map<String, ?> configs) {
        kagent.configure(configs);
    }

    @Override
    public String name() {
        return UniformAssignor.NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) throws PartitionAssignorException {
        return kagent.assign(spec, topics);
    }
}
