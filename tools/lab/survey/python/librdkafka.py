"""librdkafka, through confluent-kafka, in the scenarios of the survey."""

import contextlib
import time

from confluent_kafka import Consumer, KafkaException, Producer

from tools.lab.survey.python.task import (
    ALICE,
    CODECS,
    DELIVERED_SECONDS,
    FAULTED_COUNT,
    GIVE_UP_SECONDS,
    GROUP,
    MECHANISM,
    PASSWORD,
    PROTOCOL,
    SCENARIO,
    SEEN_SECONDS,
    SERVERS,
    TOPIC,
    TRUST,
    WRONG,
    input_ends,
    order,
    told,
)

COMMON: dict[str, object] = {"bootstrap.servers": SERVERS}
if TRUST:
    COMMON["ssl.ca.location"] = TRUST
if PROTOCOL != "PLAINTEXT":
    COMMON["security.protocol"] = PROTOCOL.lower()
if MECHANISM == "OAUTHBEARER":
    COMMON |= {"sasl.mechanism": MECHANISM, "enable.sasl.oauthbearer.unsecure.jwt": True,
               "sasl.oauthbearer.config": f"principal={ALICE}"}  # fmt: skip
elif MECHANISM:
    COMMON |= {"sasl.mechanism": MECHANISM, "sasl.username": ALICE, "sasl.password": PASSWORD}


def produce(count: int, words: int = 12, pause: float = 0, **settings: object) -> None:
    producer = Producer({**COMMON, **settings})
    for n in range(count):
        key, value = order(n, words)
        producer.produce(TOPIC, value, key=key)
        time.sleep(pause)
    producer.flush(60)


def consumer(**settings: object) -> Consumer:
    made = Consumer({**COMMON, "group.id": GROUP, "auto.offset.reset": "earliest", **settings})
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
    producer = Producer({**COMMON, "transactional.id": f"{GROUP}-teller"})
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
    producer, member = Producer(COMMON), consumer()
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


def faulted() -> None:
    """Go on after errors, and tell of each."""
    producer, failed = Producer(COMMON), []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    for n in range(FAULTED_COUNT):
        key, value = order(n)
        producer.produce(TOPIC, value, key=key, on_delivery=delivered)
        producer.poll(0)
        time.sleep(0.02)
    failed += [TimeoutError()] * producer.flush(DELIVERED_SECONDS)
    for error in failed:
        told("not delivered", error)
    member, seen, deadline = consumer(), 0, time.monotonic() + SEEN_SECONDS
    while seen < FAULTED_COUNT - len(failed) and time.monotonic() < deadline:
        message = member.poll(0.5)
        if message is not None and message.error():
            told("thrown", message.error())
        seen += message is not None and not message.error()
    try:
        member.commit(asynchronous=False)
    except KafkaException as error:
        told("thrown", error)
    member.close()
    told("seen", seen)


def refused() -> None:
    produce_settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": ALICE,
                        "sasl.password": WRONG}  # fmt: skip
    producer = Producer({"bootstrap.servers": SERVERS, **produce_settings})
    key, value = order(0, 3)
    producer.produce(TOPIC, value, key=key)
    assert producer.flush(GIVE_UP_SECONDS), "not refused"
    producer.purge()


TROUBLES = {"broker-restarted": steadily, "leader-moved": steadily, "faulted": faulted, "auth-refused": refused}


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
        case trouble:
            TROUBLES[trouble]()


if __name__ == "__main__":
    try:
        main()
    except KafkaException as error:
        raise SystemExit(f"librdkafka: {error}") from error
