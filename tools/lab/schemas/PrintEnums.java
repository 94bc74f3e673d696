import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Prints what Kafka's classes call the numbers that stand on the wire, as JSON: name of ours, class, names by number.
 * Nothing is typed off: an enum's numbers and a class's constants are read from the loaded classes. Where a class is
 * missing or has no such numbers, the program fails, and with it the import.
 */
public class PrintEnums {
    private static final String KAFKA = "org.apache.kafka.";

    /** Fields of an enum that hold its number on the wire. */
    private static final Set<String> NUMBERS = Set.of("id", "code", "value", "type", "featureLevel");

    /** Enums: a name of ours, the class. */
    private static final String[][] ENUMS = {
        {"AclOperation", "common.acl.AclOperation"},
        {"AclPermissionType", "common.acl.AclPermissionType"},
        {"AclResourceType", "common.resource.ResourceType"},
        {"AcknowledgeType", "clients.consumer.AcknowledgeType"},
        {"AlterConfigOpType", "clients.admin.AlterConfigOp$OpType"},
        {"BrokerFencingChange", "metadata.BrokerRegistrationFencingChange"},
        {"BrokerInControlledShutdownChange", "metadata.BrokerRegistrationInControlledShutdownChange"},
        {"CompressionType", "common.record.internal.CompressionType"},
        {"ConfigResourceType", "common.config.ConfigResource$Type"},
        {"ConfigSource", "common.requests.DescribeConfigsResponse$ConfigSource"},
        {"ConfigType", "common.requests.DescribeConfigsResponse$ConfigType"},
        {"ConsumerMemberState", "coordinator.group.modern.MemberState"},
        {"ControlRecordType", "common.record.internal.ControlRecordType"},
        {"CoordinatorType", "common.requests.FindCoordinatorRequest$CoordinatorType"},
        {"ElectionType", "common.ElectionType"},
        {"EndpointType", "clients.admin.EndpointType"},
        {"GroupCoordinatorRecordType", "coordinator.group.generated.CoordinatorRecordType"},
        {"IsolationLevel", "common.IsolationLevel"},
        {"KRaftVersion", "server.common.KRaftVersion"},
        {"LeaderRecoveryState", "metadata.LeaderRecoveryState"},
        {"MetadataRecordType", "common.metadata.MetadataRecordType"},
        {"PatternType", "common.resource.PatternType"},
        {"RemoteLogSegmentState", "server.log.remote.storage.RemoteLogSegmentState"},
        {"RemotePartitionDeleteState", "server.log.remote.storage.RemotePartitionDeleteState"},
        {"ScramMechanism", "clients.admin.ScramMechanism"},
        {"SecurityProtocol", "common.security.auth.SecurityProtocol"},
        {"ShareAcquireMode", "clients.consumer.internals.ShareAcquireMode"},
        {"ShareCoordinatorRecordType", "coordinator.share.generated.CoordinatorRecordType"},
        {"ShareRecordState", "server.share.fetch.RecordState"},
        {"StreamsGroupStatus", "common.requests.StreamsGroupHeartbeatResponse$Status"},
        {"StreamsMemberState", "coordinator.group.streams.MemberState"},
        {"StreamsTopologyDescriptionStatus", "clients.admin.StreamsGroupTopologyDescriptionStatus"},
        {"TimestampType", "common.record.TimestampType"},
        {"TransactionCoordinatorRecordType", "coordinator.transaction.generated.CoordinatorRecordType"},
        {"TransactionResult", "common.requests.TransactionResult"},
        {"TransactionState", "coordinator.transaction.TransactionState"},
        {"TransactionVersion", "server.common.TransactionVersion"},
        {"UpgradeType", "clients.admin.FeatureUpdate$UpgradeType"},
    };

    /**
     * Constants: a name of ours, the class, which constants (the group is the name), and whether they are all that the
     * field can hold ("all") or special values of a number that otherwise means itself ("special").
     */
    private static final String[][] CONSTANTS = {
        {"CommittedOffset", "common.requests.OffsetFetchResponse", "(INVALID_OFFSET)", "special"},
        {"ControllerId", "common.requests.MetadataResponse", "(NO_CONTROLLER)_ID", "special"},
        {"DeleteRecordsOffset", "common.requests.DeleteRecordsRequest", "(HIGH_WATERMARK)", "special"},
        {"EpochEndOffset", "common.requests.OffsetsForLeaderEpochResponse", "(UNDEFINED)_EPOCH_OFFSET", "special"},
        {"FetchSessionEpoch", "common.requests.FetchMetadata", "(INITIAL|FINAL)_EPOCH", "special"},
        {"FetchSessionId", "common.requests.FetchMetadata", "(INVALID_SESSION_ID)", "special"},
        {"GenerationId", "common.requests.JoinGroupRequest", "(UNKNOWN)_GENERATION_ID", "special"},
        {"GroupMemberEpoch", "common.requests.ConsumerGroupHeartbeatRequest", "(.*_GROUP.*)_MEMBER_EPOCH", "special"},
        {"LeaderEpoch", "common.record.internal.RecordBatch", "(NO_PARTITION_LEADER_EPOCH)", "special"},
        {"LeaderId", "common.requests.MetadataResponse", "(NO_LEADER)_ID", "special"},
        {"ListedOffset", "common.requests.ListOffsetsResponse", "(UNKNOWN)_OFFSET", "special"},
        {"ListedTimestamp", "common.requests.ListOffsetsResponse", "(UNKNOWN)_TIMESTAMP", "special"},
        {"NumPartitions", "common.requests.CreateTopicsRequest", "(NO_NUM_PARTITIONS)", "special"},
        {"OffsetSpec", "common.requests.ListOffsetsRequest", "(.*)_TIMESTAMP", "special"},
        {"ProducerEpoch", "common.record.internal.RecordBatch", "(NO_PRODUCER_EPOCH)", "special"},
        {"ProducerId", "common.record.internal.RecordBatch", "(NO_PRODUCER_ID)", "special"},
        {"QuotaMatchType", "common.requests.DescribeClientQuotasRequest", "MATCH_TYPE_(.*)", "all"},
        {"ReplicaId", "common.requests.FetchRequest", "(.*_CONSUMER|FUTURE_LOCAL_REPLICA)_ID", "special"},
        {"ReplicationFactor", "common.requests.CreateTopicsRequest", "(NO_REPLICATION_FACTOR)", "special"},
        {"ShareSessionEpoch", "common.requests.ShareRequestMetadata", "(INITIAL|FINAL)_EPOCH", "special"},
        {"VolumeBytes", "common.requests.DescribeLogDirsResponse", "(UNKNOWN)_VOLUME_BYTES", "special"},
    };

    public static void main(String[] arguments) throws ReflectiveOperationException {
        Map<String, String> rows = new TreeMap<>();
        for (String[] each : ENUMS) {
            rows.put(each[0], row(each[0], each[1], "all", members(Class.forName(KAFKA + each[1]))));
        }
        for (String[] each : CONSTANTS) {
            Map<Long, String> members = constants(Class.forName(KAFKA + each[1]), Pattern.compile(each[2]));
            rows.put(each[0], row(each[0], each[1], each[3], members));
        }
        System.out.print("{\n" + String.join(",\n", rows.values()) + "\n}\n");
    }

    private static String row(String name, String className, String which, Map<Long, String> members) {
        if (members.isEmpty()) {
            throw new IllegalStateException(className + " has none of the numbers of " + name);
        }
        List<String> names = new ArrayList<>();
        members.forEach((number, member) -> names.add("\"" + number + "\": \"" + member + "\""));
        String source = "{\"source\": \"" + KAFKA + className + "\", \"members\": \"" + which + "\",";
        return "  \"" + name + "\": " + source + "\n    \"names\": {" + String.join(", ", names) + "}}";
    }

    private static Map<Long, String> members(Class<?> type) throws ReflectiveOperationException {
        Map<Long, String> members = new TreeMap<>();
        for (Field field : type.getDeclaredFields()) {
            if (NUMBERS.contains(field.getName()) && field.getType().isPrimitive() && !Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                for (Object each : type.getEnumConstants()) {
                    Object value = field.get(each);
                    long number = value instanceof Boolean ? ((Boolean) value ? 1 : 0) : ((Number) value).longValue();
                    put(members, number, ((Enum<?>) each).name());
                }
            }
        }
        return members;
    }

    private static Map<Long, String> constants(Class<?> type, Pattern which) throws ReflectiveOperationException {
        Map<Long, String> members = new TreeMap<>();
        for (Field field : type.getDeclaredFields()) {
            Matcher name = which.matcher(field.getName());
            if (Modifier.isStatic(field.getModifiers()) && field.getType().isPrimitive() && name.matches()) {
                field.setAccessible(true);
                put(members, ((Number) field.get(null)).longValue(), name.group(1));
            }
        }
        return members;
    }

    private static void put(Map<Long, String> members, long number, String name) {
        String other = members.put(number, name);
        if (other != null) {
            throw new IllegalStateException(number + " is called both " + other + " and " + name);
        }
    }
}
