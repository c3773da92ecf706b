"""The alert bridge: recommendations to Alertmanager, webhooks and chat."""
