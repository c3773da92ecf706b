package io.kagent.assignor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON (RFC 8259) to maps, lists, strings, longs, doubles, booleans and null.
 *
 * <p>A consumer's class path need not have a JSON library, and one of our own version would clash with the application's.
 * Throws IllegalArgumentException for everything that is not JSON, or is nested more than 64 deep.
 */
final class Json {
    private static final int DEEPEST = 64;
    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at != text.length()) {
            throw json.wrong();
        }
        return value;
    }

    private Object value() {
        space();
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> out = new LinkedHashMap<>();
        open();
        if (closes('}')) {
            return out;
        }
        do {
            space();
            String name = string();
            space();
            take(':');
            out.put(name, value());
        } while (goesOn('}'));
        return out;
    }

    private List<Object> array() {
        List<Object> out = new ArrayList<>();
        open();
        if (closes(']')) {
            return out;
        }
        do {
            out.add(value());
        } while (goesOn(']'));
        return out;
    }

    private void open() {
        at++;
        if (++depth > DEEPEST) {
            throw wrong();
        }
    }

    private boolean closes(char end) {
        space();
        if (peek() != end) {
            return false;
        }
        at++;
        depth--;
        return true;
    }

    private boolean goesOn(char end) {
        if (closes(end)) {
            return false;
        }
        take(',');
        return true;
    }

    private String string() {
        take('"');
        StringBuilder out = new StringBuilder();
        while (peek() != '"') {
            char c = text.charAt(at++);
            if (c < ' ') {
                throw wrong();
            }
            out.append(c == '\\' ? escaped() : c);
        }
        at++;
        return out.toString();
    }

    private char escaped() {
        char c = peek();
        at++;
        int plain = "\"\\/bfnrt".indexOf(c);
        if (plain >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(plain);
        }
        if (c != 'u' || at + 4 > text.length()) {
            throw wrong();
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private Object number() {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(start, at);
        if (digits.chars().anyMatch(c -> ".eE".indexOf(c) >= 0)) {
            return Double.valueOf(digits);
        }
        return Long.valueOf(digits);
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private void take(char wanted) {
        if (peek() != wanted) {
            throw wrong();
        }
        at++;
    }

    private char peek() {
        if (at >= text.length()) {
            throw wrong();
        }
        return text.charAt(at);
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at character " + at);
    }
}
