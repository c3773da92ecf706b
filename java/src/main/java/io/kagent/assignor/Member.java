package io.kagent.assignor;

import java.util.Collection;
import java.util.Set;

/**
 * One member of a group as the assignor sees it.
 *
 * @param id         the coordinator's id of it
 * @param instanceId null for a dynamic member
 * @param topics     the topics it subscribes to, as far as they exist
 * @param held       what it was given last
 * @param generation the generation of that; -1 where it is not known
 */
record Member<T>(String id, String instanceId, Collection<T> topics, Set<Part<T>> held, int generation) {
    static final int UNKNOWN_GENERATION = -1;

    /** The name that outlives a restart of a static member. */
    String name() {
        return instanceId != null ? instanceId : id;
    }
}
