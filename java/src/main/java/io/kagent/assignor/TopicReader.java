package io.kagent.assignor;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps a Board of kagent's two topics, in a daemon thread of its own; nobody waits for it.
 *
 * <p>Each time both topics were read to their ends, {@link #readAtMs} moves on; while they cannot be, it stays, and what was
 * read grows old. The thread is started by the first look, or some seconds after {@link #startLater}: a broker should know
 * the plans before a coordinator moves to it, and tools that only look at a broker's settings end before that.
 */
final class TopicReader implements Source {
    private static final Logger LOG = LoggerFactory.getLogger(TopicReader.class);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration ANSWER_WITHIN = Duration.ofSeconds(15);
    private static final long CONFIRM_EVERY_MS = 2_000;
    private static final long START_AFTER_MS = 2_000;
    private static final long LONGEST_PAUSE_MS = 8_000;

    private final Settings settings;
    private final Predicate<String> wanted;
    private final BooleanSupplier needed;
    private final AtomicBoolean begun = new AtomicBoolean();
    private final CountDownLatch looked = new CountDownLatch(1);
    private volatile Board board;
    private volatile long readAtMs = -1;

    /**
     * @param wanted which keys are kept
     * @param needed whether anybody still looks; the thread ends when nobody does
     */
    TopicReader(Settings settings, Predicate<String> wanted, BooleanSupplier needed) {
        this.settings = settings;
        this.wanted = wanted;
        this.needed = needed;
        this.board = new Board(wanted);
    }

    @Override
    public Board board() {
        return board;
    }

    @Override
    public long readAtMs() {
        return readAtMs;
    }

    void startLater() {
        if (settings.hasAddress() && begun.compareAndSet(false, true)) {
            Thread thread = new Thread(this::run, "kagent-reader");
            thread.setDaemon(true);
            thread.start();
        }
    }

    @Override
    public void startNow() {
        startLater();
        looked.countDown();
    }

    private void run() {
        try {
            if (looked.await(START_AFTER_MS, TimeUnit.MILLISECONDS)) {
                LOG.debug("reading kagent's topics at the first rebalance");
            }
            for (int failures = 0; needed.getAsBoolean(); failures++) {
                long began = System.nanoTime();
                attempt(failures);
                failures = System.nanoTime() - began > 60_000_000_000L ? 0 : failures;
                Thread.sleep(Math.min(LONGEST_PAUSE_MS, 500L << Math.min(failures, 6)));
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private void attempt(int failures) throws InterruptedException {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            read(consumer);
        } catch (org.apache.kafka.common.errors.InterruptException interrupted) {
            throw new InterruptedException();
        } catch (Exception | LinkageError error) {
            // Once, and again after each hour or so of failures: a broker's log is not ours to fill.
            if (failures % 450 == 0) {
                LOG.warn("kagent's topics on {} cannot be read: {}. Nothing new is followed meanwhile.",
                    settings.client().get(Settings.BOOTSTRAP), error.getMessage());
            }
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Map<String, Object> config = new HashMap<>(settings.client());
        // Without a group: it commits nothing and needs no right on groups.
        config.remove("group.id");
        config.remove("group.instance.id");
        config.putIfAbsent("client.id", "kagent-assignor");
        config.put("enable.auto.commit", "false");
        config.put("allow.auto.create.topics", "false");
        config.put("auto.offset.reset", "earliest");
        // kagent writes in transactions: what was rolled back is not its word.
        config.put("isolation.level", "read_committed");
        // Its own broker may still be starting: not a line in the log for each try.
        config.putIfAbsent("reconnect.backoff.ms", 500);
        config.putIfAbsent("reconnect.backoff.max.ms", 5_000);
        config.putIfAbsent("default.api.timeout.ms", (int) ANSWER_WITHIN.toMillis());
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(TopicReader.class.getClassLoader());
        try {
            return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }

    private void read(KafkaConsumer<byte[], byte[]> consumer) {
        List<TopicPartition> partitions = partitions(consumer);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        Board fresh = new Board(wanted);
        long confirmedMs = 0;
        boolean atEnd = false;
        while (needed.getAsBoolean()) {
            for (ConsumerRecord<byte[], byte[]> found : consumer.poll(POLL)) {
                take(fresh, found);
            }
            long nowMs = System.currentTimeMillis();
            if (!atEnd || nowMs - confirmedMs >= CONFIRM_EVERY_MS) {
                atEnd = atEnd(consumer, partitions);
                if (atEnd) {
                    if (board != fresh) {
                        LOG.info("kagent's topics are read to their ends: messages about {} groups", fresh.size());
                    }
                    confirmedMs = nowMs;
                    board = fresh;
                    readAtMs = nowMs;
                }
            }
        }
    }

    private void take(Board fresh, ConsumerRecord<byte[], byte[]> found) {
        String key = found.key() == null ? null : new String(found.key(), StandardCharsets.UTF_8);
        if (found.topic().equals(settings.mutes())) {
            fresh.muted(key, found.value());
        } else {
            fresh.recommended(key, found.value());
        }
    }

    private List<TopicPartition> partitions(KafkaConsumer<byte[], byte[]> consumer) {
        List<TopicPartition> out = new ArrayList<>();
        for (String topic : List.of(settings.recommendations(), settings.mutes())) {
            List<PartitionInfo> found = consumer.partitionsFor(topic, ANSWER_WITHIN);
            if (found == null || found.isEmpty()) {
                throw new IllegalStateException(
                    "the topic " + topic + " does not exist or may not be read; run `kagent topics`");
            }
            found.forEach(info -> out.add(new TopicPartition(topic, info.partition())));
        }
        return out;
    }

    private boolean atEnd(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions) {
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, ANSWER_WITHIN);
        boolean all = ends.size() == partitions.size();
        for (Map.Entry<TopicPartition, Long> end : ends.entrySet()) {
            long position = consumer.position(end.getKey(), ANSWER_WITHIN);
            if (position > end.getValue()) {
                throw new IllegalStateException("they were made anew");
            }
            all &= position == end.getValue();
        }
        return all;
    }
}
