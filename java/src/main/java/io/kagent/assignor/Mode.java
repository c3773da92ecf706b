package io.kagent.assignor;

/** The setting {@code kagent.apply}. */
public enum Mode {
    /** Nothing is read and nothing counted. */
    OFF,
    /** Count what would have been followed; assign as if kagent were not there. */
    DRY,
    /** Follow. */
    FOLLOW;

    /** A typing error never follows. */
    static Mode of(Object said) {
        switch (said == null ? "dry" : said.toString().trim()) {
            case "dry":
                return DRY;
            case "follow":
                return FOLLOW;
            default:
                return OFF;
        }
    }
}
