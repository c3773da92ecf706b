"""The pure fold from records to a group: what stands in ``__consumer_offsets``, as the coordinator sees it."""

from kagent.groups.group import GroupView, MemberView, topic_id, well_typed
from kagent.groups.known_records import KnownRecords, apply, apply_all
from kagent.groups.view import view

__all__ = ["GroupView", "KnownRecords", "MemberView", "apply", "apply_all", "topic_id", "view", "well_typed"]
