import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;

import io.kagent.assignor.KagentConsumerAssignor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Real Java consumers for the tests: {@code Members <topic> <how many> <name=value>…}. One line on stdout for each event:
 * {@code <ms> <member> assigned|revoked|lost <topic-partition>…}, and {@code failed <error>}. Ends when stdin does.
 */
public class Members {
    private static volatile boolean stop;

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[Integer.parseInt(args[1])];
        for (int at = 0; at < threads.length; at++) {
            Properties config = new Properties();
            config.setProperty("client.id", "java-" + at);
            for (int more = 2; more < args.length; more++) {
                String[] pair = args[more].split("=", 2);
                config.setProperty(pair[0], pair[1].replace("{n}", String.valueOf(at)));
            }
            String name = config.getProperty("client.id");
            threads[at] = new Thread(() -> consume(name, args[0], config));
            threads[at].start();
        }
        while (System.in.read() >= 0) {
            // Waits for the test to end.
        }
        stop = true;
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void consume(String name, String topic, Properties config) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            consumer.subscribe(List.of(topic), new Listener(name));
            while (!stop) {
                consumer.poll(Duration.ofMillis(100));
                KagentConsumerAssignor.rejoinIfPlanWaits(consumer);
            }
        } catch (RuntimeException error) {
            say(name, "failed " + error);
        }
    }

    private static synchronized void say(String name, String what) {
        System.out.println(System.currentTimeMillis() + " " + name + " " + what);
    }

    private record Listener(String name) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> say(name, "assigned " + partition));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> say(name, "revoked " + partition));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> say(name, "lost " + partition));
        }
    }
}
