"""What others read and write: recommendations, state messages, mutes, group events, and their JSON Schema. No logic."""
