package io.kagent.assignor;

import java.util.Map;

/** JMX: {@code io.kagent:type=assignor,side=broker} and {@code side=consumer}; one a process, all groups together. */
public interface AssignorStatsMXBean {
    /** off, dry or follow. */
    String getMode();

    /** Assignments that gave out an open plan; in a dry run: would have. */
    long getFollowed();

    /** Assignments that kept the plan that was followed before. */
    long getKept();

    /** Assignments that were left to the built-in assignor. */
    long getRefused();

    /** Assignments by reason. */
    Map<String, Long> getReasons();

    /** ms since kagent's topics were last read to their ends; -1 if never. */
    long getReadAgeMs();

    /** Groups with a message on kagent's topics. */
    int getGroups();

    /** ns that the decision took in the last assignment, without the built-in assignor. */
    long getLastDecisionNs();
}
