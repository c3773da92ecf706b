package io.kagent.assignor;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a member sends in its subscription's user data: what it was given last, and when the group was asked to rejoin.
 *
 * <pre>
 * 8 bytes  "kagent", 0, version 1
 * int32    generation of what it was given, -1: none
 * int32    number of requests to rejoin, then each as int64, ms since the epoch
 * int32    number of topics, then each as UTF (Java's modified UTF-8), int32 number of partitions, int32 each
 * </pre>
 *
 * Only assignments with user data keep a group from going over to KIP-848 (KAFKA-18134); subscriptions do not, and this
 * assignor's assignments have none. Under the cooperative protocol the subscription itself lists what a member owns; the
 * eager one gives all up before it joins, so only this note tells it.
 */
record MemberNote(int generation, List<Long> askedMs, Set<Part<String>> given) {
    private static final byte[] MARK = {'k', 'a', 'g', 'e', 'n', 't', 0, 1};
    private static final int MOST_PARTITIONS = PlanCheck.LARGEST;
    private static final int MOST_ASKED = 8;
    static final MemberNote NONE = new MemberNote(Member.UNKNOWN_GENERATION, List.of(), Set.of());

    ByteBuffer written() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.write(MARK);
            out.writeInt(generation);
            List<Long> last = askedMs.subList(Math.max(0, askedMs.size() - MOST_ASKED), askedMs.size());
            out.writeInt(last.size());
            for (long ms : last) {
                out.writeLong(ms);
            }
            write(out, given.size() > MOST_PARTITIONS ? Set.of() : given);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return ByteBuffer.wrap(bytes.toByteArray());
    }

    private static void write(DataOutputStream out, Set<Part<String>> parts) throws IOException {
        Map<String, List<Integer>> byTopic = new HashMap<>();
        parts.forEach(part -> byTopic.computeIfAbsent(part.topic(), topic -> new ArrayList<>()).add(part.partition()));
        out.writeInt(byTopic.size());
        for (Map.Entry<String, List<Integer>> topic : byTopic.entrySet()) {
            out.writeUTF(topic.getKey());
            out.writeInt(topic.getValue().size());
            for (int number : topic.getValue()) {
                out.writeInt(number);
            }
        }
    }

    /** NONE for whatever is no such note. */
    static MemberNote read(ByteBuffer data) {
        if (data == null) {
            return NONE;
        }
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        if (bytes.length < MARK.length || !Arrays.equals(MARK, 0, MARK.length, bytes, 0, MARK.length)) {
            return NONE;
        }
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            in.skipBytes(MARK.length);
            return new MemberNote(in.readInt(), asked(in), parts(in));
        } catch (IOException malformed) {
            return NONE;
        }
    }

    private static List<Long> asked(DataInputStream in) throws IOException {
        List<Long> out = new ArrayList<>();
        for (int left = counted(in, MOST_ASKED); left > 0; left--) {
            out.add(in.readLong());
        }
        return out;
    }

    private static Set<Part<String>> parts(DataInputStream in) throws IOException {
        Set<Part<String>> out = new HashSet<>();
        for (int topics = counted(in, MOST_PARTITIONS); topics > 0; topics--) {
            String topic = in.readUTF();
            for (int left = counted(in, MOST_PARTITIONS); left > 0; left--) {
                out.add(new Part<>(topic, in.readInt()));
            }
        }
        return out;
    }

    private static int counted(DataInputStream in, int most) throws IOException {
        int count = in.readInt();
        if (count < 0 || count > most) {
            throw new IOException("not a note of this version");
        }
        return count;
    }
}
