// @platformatic/kafka in the scenarios of the survey.

import { Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";
import task from "./survey-task.js";

const {
  ALICE, GIVE_UP_MS, GROUP, MECHANISM, SCENARIO, SECRET, SERVERS, TOKEN, TOPIC, TRUST, WRONG, delivered, inputEnds, orders, refused,
  sleep, told,
} = task;
const credentials = MECHANISM === "OAUTHBEARER" ? { token: TOKEN } : { username: ALICE, password: SECRET };
const common = {
  clientId: "platformatic", bootstrapBrokers: [SERVERS], ...(TRUST && { tls: TRUST }),
  ...(MECHANISM && { sasl: { mechanism: MECHANISM, ...credentials } }),
};
const records = (count, words) => orders(count, words).map((order) => ({ topic: TOPIC, ...order }));
const makeProducer = (settings = {}) => new Producer({ ...common, serializers: stringSerializers, ...settings });

// A producer ignores its own acks: each send has them.
async function produce(count, words = 12, { acks, ...settings } = {}) {
  const producer = makeProducer(settings);
  await producer.send({ messages: records(count, words), ...(acks && { acks }) });
  await producer.close();
}

// Each record is a call of its own.
async function produceSlowly() {
  const producer = makeProducer(), sends = [];
  for (const message of records(40)) {
    sends.push(producer.send({ messages: [message] }));
    await sleep(20);
  }
  await Promise.all(sends);
  await producer.close();
}

// Returns a member, and a promise of its having seen `count` records.
async function join(count, settings = {}, onError = (error) => console.error(error.message), onRecord = () => {}) {
  const consumer = new Consumer({ ...common, groupId: GROUP, deserializers: stringDeserializers, ...settings });
  consumer.on("error", onError);
  const stream = await consumer.consume({ topics: [TOPIC], mode: "committed", fallbackMode: "earliest" });
  stream.on("error", onError);
  let seen = 0;
  const last = new Map();
  const drained = new Promise((resolve) => stream.on("data", (message) => {
    onRecord();
    last.set(message.partition, message);
    if (++seen === count) resolve();
  }));
  return { consumer, stream, drained, last };
}

async function leave({ consumer, stream }) {
  await stream.close();
  await consumer.close(true);
}

async function consume(count, seconds = 0, settings = {}) {
  const member = await join(count, settings);
  await member.drained;
  for (const message of member.last.values()) await message.commit();
  await sleep(1000 * seconds);
  await leave(member);
}

// A second member comes and goes.
async function members(settings = {}) {
  await produce(20);
  const first = await join(20, settings);
  await first.drained;
  const second = await join(-1, settings);
  await sleep(7000);
  await leave(second);
  await sleep(4000);
  await leave(first);
}

async function transactions() {
  const producer = makeProducer({ transactionalId: `${GROUP}-teller`, idempotent: true });
  for (const commit of [true, false, true]) {
    const transaction = await producer.beginTransaction();
    await transaction.send({ messages: records(10) });
    await (commit ? transaction.commit() : transaction.abort());
  }
  await producer.close();
  await consume(20);
}

// Produces and consumes until standard input ends.
async function steadily() {
  const ended = inputEnds(), producer = makeProducer(), member = await join(-1);
  for (const message of records(10_000, 3)) {
    if (ended.now) break;
    await producer.send({ messages: [message] }).catch((error) => console.error(error.message));
    await sleep(350);
  }
  await producer.close();
  await leave(member);
}

// Goes on after errors, and tells of each.
async function faulted() {
  const producer = makeProducer(), sends = [];
  for (const message of records(40)) {
    sends.push(delivered(producer.send({ messages: [message] })));
    await sleep(20);
  }
  const count = (await Promise.all(sends)).filter(Boolean).length;
  await producer.close();
  let seen = 0;
  const member = await join(count, {}, (error) => told("thrown", error), () => ++seen);
  await Promise.race([member.drained, sleep(90_000)]);
  for (const message of member.last.values()) await Promise.resolve(message.commit()).catch((error) => told("thrown", error));
  await leave(member);
  told("seen", seen);
}

async function login() {
  const producer = makeProducer({ sasl: { mechanism: "PLAIN", username: ALICE, password: WRONG } });
  await refused(producer.send({ messages: records(1, 3) }), GIVE_UP_MS);
}

async function main() {
  switch (SCENARIO) {
    case "plain": await produce(100); return consume(100, 7);
    case "changed":
      await produce(100, 12, { acks: -1, compression: "gzip" });
      return consume(100, 7, { maxWaitTime: 250 });
    case "idempotent": return produce(100, 12, { idempotent: true });
    case "transactional": return transactions();
    case "group-classic": return members();
    case "group-kip848": return members({ groupProtocol: "consumer" });
    case "compression":
      for (const compression of ["none", "gzip", "snappy", "lz4"]) await produce(20, 12, { compression });
      return consume(80);
    case "large-batches": await produce(100, 700); return consume(100);
    case "slow-broker": await produceSlowly(); return consume(40);
    case "broker-restarted": case "leader-moved": return steadily();
    case "faulted": return faulted();
    case "auth-refused": return login();
  }
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
