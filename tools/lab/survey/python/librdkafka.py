"""librdkafka, through confluent-kafka, in the scenarios of the survey."""

import contextlib
import time

from confluent_kafka import Consumer, KafkaException, Producer

from tools.lab.survey.python.task import (
    ALICE,
    CODECS,
    GIVE_UP_SECONDS,
    GROUP,
    SCENARIO,
    SERVERS,
    TOPIC,
    WRONG,
    input_ends,
    order,
)


def produce(count: int, words: int = 12, pause: float = 0, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": SERVERS, **settings})
    for n in range(count):
        key, value = order(n, words)
        producer.produce(TOPIC, value, key=key)
        time.sleep(pause)
    producer.flush(60)


def consumer(**settings: object) -> Consumer:
    made = Consumer({"bootstrap.servers": SERVERS, "group.id": GROUP, "auto.offset.reset": "earliest", **settings})
    made.subscribe([TOPIC])
    return made


def drain(member: Consumer, count: int) -> None:
    seen, deadline = 0, time.monotonic() + 60
    while seen < count and time.monotonic() < deadline:
        message = member.poll(0.5)
        seen += message is not None and not message.error()
    assert seen == count, f"{seen} of {count} records"
    member.commit(asynchronous=False)


def stay(seconds: float, *members: Consumer) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for member in members:
            member.poll(0.05)


def consume(count: int, seconds: float = 0, **settings: object) -> None:
    member = consumer(**settings)
    drain(member, count)
    stay(seconds, member)
    member.close()


def members(**settings: object) -> None:
    """A second member comes and goes."""
    produce(20)
    first = consumer(**settings)
    drain(first, 20)
    second = consumer(**settings)
    deadline = time.monotonic() + 20
    while not second.assignment() and time.monotonic() < deadline:
        stay(0.2, first, second)
    stay(4, first, second)
    second.close()
    stay(4, first)
    first.close()


def transactions() -> None:
    producer = Producer({"bootstrap.servers": SERVERS, "transactional.id": f"{GROUP}-teller"})
    producer.init_transactions(30)
    for commit in (True, False, True):
        producer.begin_transaction()
        for n in range(10):
            key, value = order(n)
            producer.produce(TOPIC, value, key=key)
        producer.flush(30)  # what was not sent yet, an abort would not send
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    consume(20, **{"isolation.level": "read_committed"})


def steadily() -> None:
    """Produce and consume until standard input ends."""
    ended, n = input_ends(), 0
    producer, member = Producer({"bootstrap.servers": SERVERS}), consumer()
    while not ended.is_set():
        key, value = order(n, 3)
        producer.produce(TOPIC, value, key=key)
        member.poll(0.25)
        time.sleep(0.1)
        n += 1
    producer.flush(30)
    with contextlib.suppress(KafkaException):  # there may be nothing to commit
        member.commit(asynchronous=False)
    member.close()


def refused() -> None:
    produce_settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": ALICE,
                        "sasl.password": WRONG}  # fmt: skip
    producer = Producer({"bootstrap.servers": SERVERS, **produce_settings})
    key, value = order(0, 3)
    producer.produce(TOPIC, value, key=key)
    assert producer.flush(GIVE_UP_SECONDS), "not refused"
    producer.purge()


def main() -> None:
    match SCENARIO:
        case "plain":
            produce(100)
            consume(100, 7)
        case "changed":
            produce(100, acks=1, **{"compression.type": "gzip"})
            consume(100, 7, **{"fetch.wait.max.ms": 250})
        case "idempotent":
            produce(100, **{"enable.idempotence": True})
        case "transactional":
            transactions()
        case "group-classic" | "group-kip848":
            members(**({"group.protocol": "consumer"} if SCENARIO == "group-kip848" else {}))
        case "compression":
            for codec in CODECS:
                produce(20, **{"compression.type": codec})
            consume(20 * len(CODECS))
        case "large-batches":
            produce(100, 700)
            consume(100)
        case "slow-broker":
            produce(40, pause=0.02)
            consume(40)
        case "broker-restarted" | "leader-moved":
            steadily()
        case "auth-refused":
            refused()


if __name__ == "__main__":
    try:
        main()
    except KafkaException as error:
        raise SystemExit(f"librdkafka: {error}") from error
