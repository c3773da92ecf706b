"""A Kafka broker, Java and the jars they need, for the demo and the tests."""
