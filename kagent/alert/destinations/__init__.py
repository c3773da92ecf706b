"""One file for each type of destination, named as its settings' ``type``; each has ``SENDER``, the class that delivers to it."""
