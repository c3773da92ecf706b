package io.kagent.assignor;

/** Names are data: what others chose must not steer a terminal or forge a line of a log. */
final class Text {
    private static final int LONGEST = 200;

    private Text() {
    }

    /** The name with control and format characters escaped, cut after 200. */
    static String shown(String name) {
        StringBuilder out = new StringBuilder();
        name.codePoints().limit(LONGEST).forEach(c -> {
            if (plain(c)) {
                out.appendCodePoint(c);
            } else {
                out.append(String.format("\\u%04x", c));
            }
        });
        return out.toString();
    }

    private static boolean plain(int c) {
        int type = Character.getType(c);
        return !Character.isISOControl(c)
            && type != Character.FORMAT
            && type != Character.SURROGATE
            && type != Character.LINE_SEPARATOR
            && type != Character.PARAGRAPH_SEPARATOR
            && type != Character.UNASSIGNED;
    }
}
