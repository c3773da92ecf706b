"""The pure fold from records to a group: what stands in ``__consumer_offsets``, as the coordinator sees it."""

from kagent.groups.state import GroupState, apply
from kagent.groups.view import GroupView, MemberView, topic_id, view

__all__ = ["GroupState", "GroupView", "MemberView", "apply", "topic_id", "view"]
