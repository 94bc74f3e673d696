// kafkajs in the scenarios of the survey.

const { CompressionTypes, Kafka, logLevel } = require("kafkajs");
const {
  ALICE, GIVE_UP_MS, GROUP, MECHANISM, SCENARIO, SECRET, SERVERS, TOKEN, TOPIC, TRUST, WRONG, delivered, inputEnds, orders, refused,
  sleep, told,
} = require("./survey-task.js");

const token = { oauthBearerProvider: async () => ({ value: TOKEN }) };
const login = MECHANISM && { sasl: { mechanism: MECHANISM.toLowerCase(), username: ALICE, password: SECRET, ...token } };
const kafka = new Kafka({ brokers: [SERVERS], logLevel: logLevel.NOTHING, ...(TRUST && { ssl: TRUST }), ...login });

async function produce(count, words = 12, { settings = {}, ...send } = {}) {
  const producer = kafka.producer(settings);
  await producer.connect();
  await producer.send({ topic: TOPIC, messages: orders(count, words), ...send });
  await producer.disconnect();
}

// Each record is a call of its own.
async function produceSlowly() {
  const producer = kafka.producer(), sends = [];
  await producer.connect();
  for (const message of orders(40)) {
    sends.push(producer.send({ topic: TOPIC, messages: [message] }));
    await sleep(20);
  }
  await Promise.all(sends);
  await producer.disconnect();
}

// Returns a member, and a promise of its having seen `count` records.
async function join(count, settings = {}, onCrash = () => {}, onRecord = () => {}) {
  const consumer = kafka.consumer({ groupId: GROUP, ...settings });
  consumer.on(consumer.events.CRASH, ({ payload }) => onCrash(payload.error));
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  let seen = 0;
  const next = new Map();
  const drained = new Promise((resolve) => consumer.run({
    eachMessage: async ({ partition, message }) => {
      onRecord();
      next.set(partition, String(Number(message.offset) + 1));
      if (++seen === count) resolve();
    },
  }));
  return { consumer, drained, next };
}

async function consume(count, seconds = 0, settings = {}) {
  const { consumer, drained, next } = await join(count, settings);
  await drained;
  await consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic: TOPIC, partition, offset })));
  await sleep(1000 * seconds);
  await consumer.disconnect();
}

// A second member comes and goes.
async function members() {
  await produce(20);
  const first = await join(20);
  await first.drained;
  const second = await join(-1);
  await sleep(7000);
  await second.consumer.disconnect();
  await sleep(4000);
  await first.consumer.disconnect();
}

async function transactions() {
  const producer = kafka.producer({ transactionalId: `${GROUP}-teller`, idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (const commit of [true, false, true]) {
    const transaction = await producer.transaction();
    await transaction.send({ topic: TOPIC, messages: orders(10) });
    await (commit ? transaction.commit() : transaction.abort());
  }
  await producer.disconnect();
  await consume(20);
}

// Produces and consumes until standard input ends.
async function steadily() {
  const ended = inputEnds();
  const producer = kafka.producer();
  await producer.connect();
  const { consumer } = await join(-1);
  for (const message of orders(10_000, 3)) {
    if (ended.now) break;
    await producer.send({ topic: TOPIC, messages: [message] }).catch((error) => console.error(error.message));
    await sleep(350);
  }
  await producer.disconnect();
  await consumer.disconnect();
}

// Goes on after errors, and tells of each.
async function faulted() {
  const producer = kafka.producer(), sends = [];
  await producer.connect();
  for (const message of orders(40)) {
    sends.push(delivered(producer.send({ topic: TOPIC, messages: [message] })));
    await sleep(20);
  }
  const count = (await Promise.all(sends)).filter(Boolean).length;
  await producer.disconnect();
  let seen = 0;
  const { consumer, drained, next } = await join(count, {}, (error) => told("thrown", error), () => ++seen);
  await Promise.race([drained, sleep(90_000)]);
  await consumer.commitOffsets([...next].map(([partition, offset]) => ({ topic: TOPIC, partition, offset })))
    .catch((error) => told("thrown", error));
  await consumer.disconnect();
  told("seen", seen);
}

async function loginRefused() {
  const guarded = new Kafka({ brokers: [SERVERS], logLevel: logLevel.NOTHING, sasl: { mechanism: "plain", username: ALICE, password: WRONG } });
  const producer = guarded.producer();
  await refused(producer.connect(), GIVE_UP_MS);
}

async function main() {
  switch (SCENARIO) {
    case "plain": await produce(100); return consume(100, 7);
    case "changed":
      await produce(100, 12, { acks: 1, compression: CompressionTypes.GZIP });
      return consume(100, 7, { maxWaitTimeInMs: 250 });
    case "idempotent": return produce(100, 12, { settings: { idempotent: true } });
    case "transactional": return transactions();
    case "group-classic": return members();
    case "compression":
      for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) await produce(20, 12, { compression });
      return consume(40);
    case "large-batches": await produce(100, 700); return consume(100);
    case "slow-broker": await produceSlowly(); return consume(40);
    case "broker-restarted": case "leader-moved": return steadily();
    case "faulted": return faulted();
    case "auth-refused": return loginRefused();
  }
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
