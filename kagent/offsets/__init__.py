"""The bytes of __consumer_offsets as typed records."""
