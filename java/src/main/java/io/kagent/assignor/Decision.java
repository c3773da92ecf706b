package io.kagent.assignor;

import java.util.List;
import java.util.Map;

/**
 * What is done at a rebalance.
 *
 * @param placed member id → partitions, every member present; null: the built-in assignor decides
 * @param about  the id of the recommendation that it is about; empty where there is none
 */
record Decision<T>(Reason reason, String sentence, Map<String, List<Part<T>>> placed, String about) {

    static <T> Decision<T> builtIn(Reason reason, String sentence) {
        return new Decision<>(reason, sentence, null, "");
    }
}
