package io.kagent.assignor;

/** One partition. {@code T} is what the caller knows a topic by: its id on a broker, its name in a client. */
record Part<T>(T topic, int partition) {
    @Override
    public String toString() {
        return Text.shown(String.valueOf(topic)) + "-" + partition;
    }
}
