package io.kagent.assignor;

/** Where decisions look: what was read of kagent's topics. Never waits. */
interface Source {
    Board board();

    /** When both topics were last read to their ends, ms since the epoch; negative: never. */
    long readAtMs();

    /** A rebalance is under way: read, if that has not begun. */
    void startNow();
}
