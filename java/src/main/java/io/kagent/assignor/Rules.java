package io.kagent.assignor;

/**
 * What an assignor goes by.
 *
 * @param mode     whether plans are followed
 * @param cluster  the name under which kagent watches the group's cluster
 * @param group    the group; null on a broker, whose assignor is never told
 * @param maxAgeMs what was read longer ago is as good as nothing
 * @param partial  whether members may hold less than they were given: the cooperative protocol, between two rebalances
 */
record Rules(Mode mode, String cluster, String group, long maxAgeMs, boolean partial) {
}
