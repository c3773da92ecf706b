"""For those who receive recommendations: the Python client, alert bridges, following assignors."""
