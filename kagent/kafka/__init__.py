"""The cluster: admin client, topic set-up, jars and the embedded broker."""
