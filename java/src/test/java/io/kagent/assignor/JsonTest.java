package io.kagent.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    @Test
    void everyKindOfValueIsRead() {
        Object read = Json.parse(" {\"a\": [1, -2.5e1, true, false, null, \"\\u00e4\\n\\\"\\/\\ud83d\\ude00\"], \"b\": {}} ");
        Map<?, ?> map = (Map<?, ?>) read;
        List<?> list = (List<?>) map.get("a");
        assertEquals(List.of(1L, -25.0, true, false), list.subList(0, 4));
        assertEquals("ä\n\"/\ud83d\ude00", list.get(5));
        assertEquals(Map.of(), map.get("b"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "[1,", "[1,]", "{\"a\"}", "{\"a\":}", "\"\\x\"", "\"\\u12", "tru", "1 2", "-", "\"a\nb\"", "]"})
    void whatIsNoJsonIsRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> Json.parse(text));
    }

    @Test
    void whatIsNestedTooDeepIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> Json.parse("[".repeat(100_000)));
    }
}
