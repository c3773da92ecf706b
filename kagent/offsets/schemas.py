"""Every record of ``__consumer_offsets``, as data: decoding, the record names and the reference page come from here.

Source: the message definitions of Kafka's group-coordinator module (``…Key.json``, ``…Value.json``), 0.8.2 to 4.3.
Keys are never flexible. To add Kafka's next record type, add one entry to RECORDS.
"""

from __future__ import annotations

from dataclasses import dataclass

from kagent.offsets.record_layout import Struct, struct


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """One record type. ``flexible``: first flexible value version (None: none is). ``earlier``: value layouts that
    reuse version 0 of an early-access release, tried in order where the current one does not fit exactly."""

    name: str
    key: Struct
    value: Struct
    versions: range
    flexible: int | None
    earlier: tuple[Struct, ...] = ()
    since: str = ""


# https://github.com/apache/kafka/tree/4.3.0/group-coordinator/src/main/resources/common/message
COMMIT_KEY = struct("group string; topic string; partition int32")
GROUP = struct("groupId string")
MEMBER = struct("groupId string; memberId string")

# expireTimestamp is in version 1 alone: KIP-211 ended retention per commit, but a broker still writes version 1
# for a client that asks for it. Brokers write topicId from Kafka 4.1 on.
COMMIT = struct(
    """
    offset          int64
    leaderEpoch     int32  v3+
    metadata        string
    commitTimestamp int64
    expireTimestamp int64  v1
    topicId         uuid   v4+ tag0
    """
)
GROUP_MEMBER = struct(
    """
    memberId         string
    groupInstanceId  string? v3+
    clientId         string
    clientHost       string
    rebalanceTimeout int32   v1+
    sessionTimeout   int32
    subscription     bytes
    assignment       bytes
    """
)
# Without members the group is Empty, or with an empty protocolType one that only commits.
GROUP_METADATA = struct(
    """
    protocolType          string
    generation            int32
    protocol              string?
    leader                string?
    currentStateTimestamp int64 v2+
    members               []member
    """,
    member=GROUP_MEMBER,
)
TOPIC_METADATA = struct(
    "topicId uuid; topicName string; numPartitions int32; partitionMetadata []partition",
    partition=struct("partition int32; racks []string"),
)
PARTITION_METADATA = struct("topics []topic", topic=TOPIC_METADATA)
CLASSIC = struct(
    "sessionTimeoutMs int32; supportedProtocols []protocol", protocol=struct("name string; metadata bytes")
)
# classicMemberMetadata is explicitly null for a native member: absent, it reads as an empty struct, its default.
CONSUMER_MEMBER = struct(
    """
    instanceId            string?
    rackId                string?
    clientId              string
    clientHost            string
    subscribedTopicNames  []string
    subscribedTopicRegex  string?
    rebalanceTimeoutMs    int32
    serverAssignor        string?
    classicMemberMetadata classic? v0+ tag0
    """,
    classic=CLASSIC,
)
TOPIC_PARTITIONS = struct("topicId uuid; partitions []int32")
# assignmentEpochs came with 4.3 (KIP-1251), assignmentTimestamp, too (KIP-1263): tagged, so under the same version.
EPOCH_PARTITIONS = struct("topicId uuid; partitions []int32; assignmentEpochs []int32? v0+ tag0")
TARGET_METADATA = struct("assignmentEpoch int32; assignmentTimestamp int64 v0+ tag0")
TARGET_MEMBER = struct("topicPartitions []tp", tp=TOPIC_PARTITIONS)
CURRENT = struct(
    """
    memberEpoch                 int32
    previousMemberEpoch         int32
    state                       int8
    assignedPartitions          []tp
    partitionsPendingRevocation []tp
    """,
    tp=EPOCH_PARTITIONS,
)
SHARE_TOPIC = struct("topicId uuid; topicName string; partitions []int32")
DELETING = struct("topicId uuid; topicName string")
SHARE_STATE = struct(
    "initializingTopics []topic; initializedTopics []topic; deletingTopics []gone",
    topic=SHARE_TOPIC,
    gone=DELETING,
)
# Type 15 of Kafka 4.0 and type 9 of 3.9: without the list of topics that are being initialised.
SHARE_STATE_40 = struct("initializedTopics []topic; deletingTopics []gone", topic=SHARE_TOPIC, gone=DELETING)
KEY_VALUE = struct("key string; value string")
TASKS = struct("subtopologyId string; partitions []int32")
EPOCH_TASKS = struct("subtopologyId string; partitions []int32; assignmentEpochs []int32? v0+ tag0")
TOPIC_INFO = struct(
    "name string; partitions int32; replicationFactor int16; topicConfigs []config", config=KEY_VALUE
)
SUBTOPOLOGY = struct(
    """
    subtopologyId           string
    sourceTopics            []string
    sourceTopicRegex        []string
    stateChangelogTopics    []info
    repartitionSinkTopics   []string
    repartitionSourceTopics []info
    copartitionGroups       []copartition
    """,
    info=TOPIC_INFO,
    copartition=struct("sourceTopics []int16; sourceTopicRegex []int16; repartitionSourceTopics []int16"),
)
# Early access of KIP-848 in 3.6 and 3.7: the records that clusters upgraded from it may still hold.
EARLY_MEMBER = struct(
    """
    instanceId           string?
    rackId               string?
    clientId             string
    clientHost           string
    subscribedTopicNames []string
    subscribedTopicRegex string?
    rebalanceTimeoutMs   int32
    serverAssignor       string?
    assignors            []assignor
    """,
    assignor=struct(
        "name string; minimumVersion int16; maximumVersion int16; reason int8; version int16; metadata bytes"
    ),
)
EARLY_TARGET = struct(
    "error int8; topicPartitions []tp; metadataVersion int16; metadataBytes bytes", tp=TOPIC_PARTITIONS
)
EARLY_CURRENT = struct(
    """
    memberEpoch                 int32
    previousMemberEpoch         int32
    targetMemberEpoch           int32
    assignedPartitions          []tp
    partitionsPendingRevocation []tp
    partitionsPendingAssignment []tp
    error                       int8
    metadataVersion             int16
    metadataBytes               bytes
    """,
    tp=TOPIC_PARTITIONS,
)
EARLY_TOPICS = struct("epoch int32; topics []topic", topic=TOPIC_METADATA)


def _new(name: str, key: Struct, value: Struct, *earlier: Struct, since: str) -> RecordLayout:
    return RecordLayout(name, key, value, range(1), 0, earlier, since)


RECORDS: dict[int, RecordLayout] = {
    0: RecordLayout("LegacyOffsetCommit", COMMIT_KEY, COMMIT, range(5), 4, since="0.8.2"),
    1: RecordLayout("OffsetCommit", COMMIT_KEY, COMMIT, range(5), 4, since="0.9"),
    2: RecordLayout("GroupMetadata", struct("group string"), GROUP_METADATA, range(5), 4, since="0.9"),
    3: _new("ConsumerGroupMetadata", GROUP, struct("epoch int32; metadataHash int64 v0+ tag0"), since="3.7"),
    # From 4.1 on only tombstones are written: a hash in record 3 took its place (KIP-1101).
    4: _new("ConsumerGroupPartitionMetadata", GROUP, PARTITION_METADATA, EARLY_TOPICS, since="3.7 (to 4.0)"),
    5: _new("ConsumerGroupMemberMetadata", MEMBER, CONSUMER_MEMBER, EARLY_MEMBER, since="3.7"),
    6: _new("ConsumerGroupTargetAssignmentMetadata", GROUP, TARGET_METADATA, since="3.7"),
    7: _new("ConsumerGroupTargetAssignmentMember", MEMBER, TARGET_MEMBER, EARLY_TARGET, since="3.7"),
    8: _new("ConsumerGroupCurrentMemberAssignment", MEMBER, CURRENT, EARLY_CURRENT, since="3.7"),
    9: _new("ShareGroupPartitionMetadata", GROUP, PARTITION_METADATA, SHARE_STATE_40, since="3.9 (to 4.0)"),
    10: _new(
        "ShareGroupMemberMetadata",
        MEMBER,
        struct("rackId string?; clientId string; clientHost string; subscribedTopicNames []string"),
        since="3.9",
    ),
    11: _new(
        "ShareGroupMetadata",
        GROUP,
        # Not tagged here, unlike in record 3, and 3.9 and 4.0 wrote the epoch alone under the same version.
        struct("epoch int32; metadataHash int64"),
        struct("epoch int32"),
        since="3.9",
    ),
    12: _new("ShareGroupTargetAssignmentMetadata", GROUP, TARGET_METADATA, since="3.9"),
    13: _new("ShareGroupTargetAssignmentMember", MEMBER, TARGET_MEMBER, since="3.9"),
    14: _new(
        "ShareGroupCurrentMemberAssignment",
        MEMBER,
        struct(
            "memberEpoch int32; previousMemberEpoch int32; state int8; assignedPartitions []tp",
            tp=TOPIC_PARTITIONS,
        ),
        since="3.9",
    ),
    15: _new("ShareGroupStatePartitionMetadata", GROUP, SHARE_STATE, SHARE_STATE_40, since="4.0"),
    16: _new(
        "ConsumerGroupRegularExpression",
        struct("groupId string; regularExpression string"),
        struct("topics []string; version int64; timestamp int64"),
        since="4.0",
    ),
    17: _new(
        "StreamsGroupMetadata",
        GROUP,
        struct(
            """
            epoch                          int32
            metadataHash                   int64
            validatedTopologyEpoch         int32    v0+ tag0 = -1
            lastAssignmentConfigs          []config? v0+ tag1
            storedDescriptionTopologyEpoch int32    v0+ tag2 = -1
            failedDescriptionTopologyEpoch int32    v0+ tag3 = -1
            """,
            config=KEY_VALUE,
        ),
        since="4.1",
    ),
    # 18 was a streams group's partition metadata, removed before the release of 4.1.
    19: _new(
        "StreamsGroupMemberMetadata",
        MEMBER,
        struct(
            """
            instanceId         string?
            rackId             string?
            clientId           string
            clientHost         string
            rebalanceTimeoutMs int32
            topologyEpoch      int32
            processId          string
            userEndpoint       endpoint?
            clientTags         []tag
            """,
            endpoint=struct("host string; port uint16"),
            tag=KEY_VALUE,
        ),
        since="4.1",
    ),
    20: _new("StreamsGroupTargetAssignmentMetadata", GROUP, TARGET_METADATA, since="4.1"),
    21: _new(
        "StreamsGroupTargetAssignmentMember",
        MEMBER,
        struct("activeTasks []tasks; standbyTasks []tasks; warmupTasks []tasks", tasks=TASKS),
        since="4.1",
    ),
    22: _new(
        "StreamsGroupCurrentMemberAssignment",
        MEMBER,
        struct(
            """
            memberEpoch                   int32
            previousMemberEpoch           int32
            state                         int8
            activeTasks                   []tasks
            standbyTasks                  []tasks
            warmupTasks                   []tasks
            activeTasksPendingRevocation  []tasks
            standbyTasksPendingRevocation []tasks
            warmupTasksPendingRevocation  []tasks
            """,
            tasks=EPOCH_TASKS,
        ),
        since="4.1",
    ),
    23: _new(
        "StreamsGroupTopology",
        GROUP,
        struct("epoch int32; subtopologies []sub", sub=SUBTOPOLOGY),
        since="4.1",
    ),
}
