"""For those who receive recommendations: the Python client, and what `kagent watch` shows."""
