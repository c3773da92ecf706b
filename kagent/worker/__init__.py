"""What the worker is made of. ``engine`` and all that it imports do without Faust; ``faust_app``, ``transport``, ``event_reader`` and
``process`` join it to Faust, and ``kagent.app`` only wires them."""
