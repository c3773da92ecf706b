"""The pure fold from records to a group."""
