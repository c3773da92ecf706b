package io.kagent.assignor;

import java.nio.charset.StandardCharsets;

/** What was read, put there by a test. */
final class FixedSource implements Source {
    final Board board = new Board(key -> true);
    long readAtMs;
    boolean asked;

    FixedSource(long readAtMs) {
        this.readAtMs = readAtMs;
    }

    FixedSource recommended(String key, String value) {
        board.recommended(key, value == null ? null : value.getBytes(StandardCharsets.UTF_8));
        return this;
    }

    FixedSource muted(String key, String value) {
        board.muted(key, value == null ? null : value.getBytes(StandardCharsets.UTF_8));
        return this;
    }

    @Override
    public Board board() {
        return board;
    }

    @Override
    public long readAtMs() {
        return readAtMs;
    }

    @Override
    public void startNow() {
        asked = true;
    }
}
