import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/** A Kafka Streams application of its own protocol (KIP-1071) that takes some milliseconds a record. */
public class SlowStreams {
    public static void main(String[] given) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("application.id", given[1]);
        settings.put("client.id", given[2]);
        settings.put("state.dir", given[3]);
        settings.put("group.protocol", "streams");
        settings.put("commit.interval.ms", "500");
        long busyMs = Long.parseLong(given[5]);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(given[4], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).foreach((key, value) -> work(busyMs));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Thread.currentThread().join();
    }

    private static void work(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
