package io.kagent.assignor;

/** The recommendation is not followed. Without a stack trace: it is thrown on the coordinator's thread. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1L;
    private final Reason reason;

    Refused(Reason reason, String sentence) {
        super(sentence, null, false, false);
        this.reason = reason;
    }

    Reason reason() {
        return reason;
    }
}
