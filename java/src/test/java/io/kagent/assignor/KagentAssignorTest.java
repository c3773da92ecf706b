package io.kagent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import java.util.Random;

import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.TabularData;

import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.junit.jupiter.api.Test;

/** As a broker makes it: several times, with all its settings, whatever they are. */
class KagentAssignorTest {
    private static void givesWhatUniformGives(ConsumerGroupPartitionAssignor assignor) {
        Scene scene = Scene.of(4, 2, 7).dealt(new Random(5));
        GroupAssignment given = assignor.assign(scene.spec(), scene.describer());
        assertEquals(new UniformAssignor().assign(scene.spec(), scene.describer()).toString(), given.toString());
    }

    @Test
    void itIsUniformBeforeItIsConfiguredAndWithSettingsThatMakeNoSense() {
        givesWhatUniformGives(new KagentAssignor());
        for (Map<String, Object> settings : List.<Map<String, Object>>of(
            Map.of(),
            Map.of("kagent.apply", "follow", "kagent.bootstrap.servers", ""),
            Map.of("kagent.apply", "follow", "kagent.max.age.ms", "soon", "kagent.client.security.protocol", "NONE"),
            Map.of("kagent.apply", 7, "kagent.cluster", " ", "kagent.bootstrap.servers", "nowhere:1"))) {
            KagentAssignor assignor = new KagentAssignor();
            assignor.configure(settings);
            givesWhatUniformGives(assignor);
        }
        assertEquals("kagent", new KagentAssignor().name());
    }

    @Test
    void underTheNameUniformItIsUniformTooUntilThereIsAPlan() {
        KagentUniformAssignor assignor = new KagentUniformAssignor();
        givesWhatUniformGives(assignor);
        assignor.configure(Map.of("kagent.apply", "follow"));
        givesWhatUniformGives(assignor);
        assertEquals(new UniformAssignor().name(), assignor.name());
    }

    @Test
    void allOfOneBrokerCountTogetherAndTheCountsAreReadByJmx() throws Exception {
        Map<String, Object> settings = Map.of("kagent.apply", "follow", "kagent.cluster", "counted");
        for (int times = 0; times < 9; times++) {
            KagentAssignor assignor = new KagentAssignor();
            assignor.configure(settings);
            givesWhatUniformGives(assignor);
        }
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("io.kagent:type=assignor,side=broker");
        assertTrue(server.isRegistered(name));
        assertTrue((Long) server.getAttribute(name, "Refused") > 0);
        assertEquals(-1L, server.getAttribute(name, "ReadAgeMs"));
        TabularData reasons = (TabularData) server.getAttribute(name, "Reasons");
        assertEquals(Reason.values().length, reasons.size());
    }
}
