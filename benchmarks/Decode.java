// Kafka's own deserialiser over the same records: the peer of benchmarks/decode.py, which starts it.
// Input file: int32 n, then n times int32 size, key, int32 size (-1: null), value.

import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

public class Decode {
    public static void main(String[] args) throws Exception {
        ByteBuffer file;
        try (FileChannel channel = FileChannel.open(Path.of(args[0]))) {
            file = ByteBuffer.allocate((int) channel.size());
            while (file.hasRemaining() && channel.read(file) >= 0) { }
        }
        file.flip();
        int n = file.getInt();
        ByteBuffer[] keys = new ByteBuffer[n];
        ByteBuffer[] values = new ByteBuffer[n];
        for (int i = 0; i < n; i++) {
            keys[i] = next(file);
            values[i] = next(file);
        }
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        for (int round = 0; round < Integer.parseInt(args[1]); round++) {
            long begin = System.nanoTime();
            long sum = 0;
            for (int i = 0; i < n; i++) {
                CoordinatorRecord record = serde.deserialize(
                    keys[i].duplicate(), values[i] == null ? null : values[i].duplicate());
                sum += record.key().apiKey() + (record.value() == null ? 0 : record.value().version());
            }
            System.out.println((System.nanoTime() - begin) + " " + sum);
        }
    }

    private static ByteBuffer next(ByteBuffer file) {
        int size = file.getInt();
        if (size < 0) {
            return null;
        }
        ByteBuffer part = file.slice(file.position(), size);
        file.position(file.position() + size);
        return part;
    }
}
