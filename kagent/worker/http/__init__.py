"""What a worker serves over HTTP: the API for one worker and for all, health, metrics."""
