// kafkajs: everyday life and one transaction. `node client.js SERVERS [CERTIFICATE]`: with the certificate of the broker,
// behind TLS.

const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

const TOPIC = "kafkajs-orders", GROUP = "kafkajs-billing", COUNT = 20;
const certificate = process.argv[3];
const ssl = certificate && { ca: [require("fs").readFileSync(certificate)], checkServerIdentity: () => undefined };
const kafka = new Kafka({ clientId: "kafkajs-lab", brokers: [process.argv[2]], logLevel: logLevel.NOTHING, ssl });

const orders = (codec) => Array.from({ length: COUNT }, (_, n) => ({
  key: `customer-${n % 7}`, value: `order ${n}: ${"ladle ".repeat(12)}`, headers: { codec, n: Buffer.from([n]) },
}));

async function produce() {
  const producer = kafka.producer();
  await producer.connect();
  for (const [codec, compression] of [["none", CompressionTypes.None], ["gzip", CompressionTypes.GZIP]]) {
    await producer.send({ topic: TOPIC, compression, messages: orders(codec) });
  }
  await producer.disconnect();
  const teller = kafka.producer({ transactionalId: "kafkajs-teller", idempotent: true, maxInFlightRequests: 1 });
  await teller.connect();
  for (const commit of [true, false]) {
    const transaction = await teller.transaction();
    await transaction.send({ topic: TOPIC, messages: orders("transaction") });
    await transaction.sendOffsets({
      consumerGroupId: GROUP, topics: [{ topic: TOPIC, partitions: [{ partition: 0, offset: "0" }] }],
    });
    await (commit ? transaction.commit() : transaction.abort());
  }
  await teller.disconnect();
}

async function consume() {
  const consumer = kafka.consumer({ groupId: GROUP, maxWaitTimeInMs: 100, readUncommitted: false });
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  let seen = 0;
  await new Promise((resolve) => consumer.run({ eachMessage: async () => { if (++seen === 3 * COUNT) resolve(); } }));
  await consumer.disconnect();
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: TOPIC, numPartitions: 2 }] });
  await produce();
  await consume();
  await admin.createPartitions({ topicPartitions: [{ topic: TOPIC, count: 3 }] });
  await admin.fetchTopicMetadata({ topics: [TOPIC] });
  await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: TOPIC, configNames: ["retention.ms"] }] });
  await admin.alterConfigs({ validateOnly: true, resources: [{ type: 2, name: TOPIC, configEntries: [{ name: "retention.ms", value: "9000000" }] }] })
    .catch((refused) => console.error(refused.message));
  const acl = { resourceType: 2, resourceName: TOPIC, resourcePatternType: 3, principal: "User:ANONYMOUS", host: "*", operation: 2, permissionType: 3 };
  await admin.createAcls({ acl: [acl] });
  await admin.describeAcls(acl);
  await admin.deleteAcls({ filters: [acl] });
  await admin.alterPartitionReassignments({ topics: [{ topic: TOPIC, partitionAssignment: [{ partition: 0, replicas: [1] }] }] });
  await admin.listPartitionReassignments({});
  await admin.fetchTopicOffsets(TOPIC);
  await admin.fetchTopicOffsetsByTimestamp(TOPIC, 0);
  await admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] });
  await admin.deleteTopicRecords({ topic: TOPIC, partitions: [{ partition: 0, offset: "1" }] });
  await admin.listGroups();
  await admin.describeGroups([GROUP]);
  await admin.describeCluster();
  await admin.deleteGroups([GROUP]);
  await admin.deleteTopics({ topics: [TOPIC] });
  await admin.disconnect();
}

main().catch((error) => { console.error(error); process.exit(1); });
