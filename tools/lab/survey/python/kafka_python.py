"""kafka-python in the scenarios of the survey."""

import threading
import time

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

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
    TOKEN,
    TOPIC,
    TRUST,
    WRONG,
    input_ends,
    order,
    told,
)

COMMON: dict[str, object] = {"bootstrap_servers": SERVERS}
if PROTOCOL != "PLAINTEXT":
    from kafka.net.sasl.oauth import AbstractTokenProvider  # release 2.0, which logs in nowhere, lacks it

    class Token(AbstractTokenProvider):
        def token(self) -> str:
            return TOKEN

    COMMON |= {"security_protocol": PROTOCOL, "ssl_cafile": TRUST or None, "sasl_mechanism": MECHANISM or None,
               "sasl_plain_username": ALICE, "sasl_plain_password": PASSWORD,
               "sasl_oauth_token_provider": Token()}  # fmt: skip


def produce(count: int, words: int = 12, pause: float = 0, **settings: object) -> None:
    producer = KafkaProducer(**COMMON, **settings)
    for n in range(count):
        key, value = order(n, words)
        producer.send(TOPIC, value, key=key)
        time.sleep(pause)
    producer.flush(60)
    producer.close()


def consumer(**settings: object) -> KafkaConsumer:
    return KafkaConsumer(TOPIC, **COMMON, group_id=GROUP, auto_offset_reset="earliest", **settings)


def drain(member: KafkaConsumer, count: int) -> None:
    seen, deadline = 0, time.monotonic() + 60
    while seen < count and time.monotonic() < deadline:
        seen += sum(map(len, member.poll(100).values()))
    assert seen == count, f"{seen} of {count} records"
    member.commit()


def stay(seconds: float, member: KafkaConsumer) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        member.poll(100)


def consume(count: int, seconds: float = 0, **settings: object) -> None:
    member = consumer(**settings)
    drain(member, count)
    stay(seconds, member)
    member.close()


def members() -> None:
    """A second member comes and goes."""
    produce(20)
    first = consumer()
    drain(first, 20)

    def come_and_go() -> None:
        second = consumer()
        deadline = time.monotonic() + 20
        while not second.assignment() and time.monotonic() < deadline:
            second.poll(100)
        stay(4, second)
        second.close()

    other = threading.Thread(target=come_and_go)
    other.start()
    while other.is_alive():
        first.poll(100)
    stay(4, first)
    first.close()


def transactions() -> None:
    producer = KafkaProducer(**COMMON, transactional_id=f"{GROUP}-teller")
    producer.init_transactions()
    for commit in (True, False, True):
        producer.begin_transaction()
        for n in range(10):
            key, value = order(n)
            producer.send(TOPIC, value, key=key)
        producer.flush(30)  # what was not sent yet, an abort would not send
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.close()
    consume(20, isolation_level="read_committed")


def steadily() -> None:
    """Produce and consume until standard input ends."""
    ended, n = input_ends(), 0
    producer, member = KafkaProducer(**COMMON), consumer()
    while not ended.is_set():
        key, value = order(n, 3)
        producer.send(TOPIC, value, key=key)
        member.poll(250)
        time.sleep(0.1)
        n += 1
    producer.flush(30)
    producer.close()
    member.commit()
    member.close()


def faulted() -> None:
    """Go on after errors, and tell of each."""
    producer, failed = KafkaProducer(**COMMON), []
    for n in range(FAULTED_COUNT):
        key, value = order(n)
        producer.send(TOPIC, value, key=key).add_errback(failed.append)
        time.sleep(0.02)
    producer.flush(DELIVERED_SECONDS)
    producer.close(10)
    for error in failed:
        told("not delivered", error)
    member, seen, deadline = consumer(), 0, time.monotonic() + SEEN_SECONDS
    while seen < FAULTED_COUNT - len(failed) and time.monotonic() < deadline:
        try:
            seen += sum(map(len, member.poll(100).values()))
        except KafkaError as error:
            told("thrown", error)
            time.sleep(1)
    try:
        member.commit()
    except KafkaError as error:
        told("thrown", error)
    member.close()
    told("seen", seen)


def refused() -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": ALICE,
             "sasl_plain_password": WRONG}  # fmt: skip
    try:
        producer = KafkaProducer(bootstrap_servers=SERVERS, max_block_ms=GIVE_UP_SECONDS * 1000, **login)
        key, value = order(0, 3)
        producer.send(TOPIC, value, key=key).get(GIVE_UP_SECONDS)
    except KafkaError as error:
        print(error)
    else:
        raise AssertionError("not refused")


TROUBLES = {"broker-restarted": steadily, "leader-moved": steadily, "faulted": faulted, "auth-refused": refused}


def main() -> None:
    match SCENARIO:
        case "plain":
            produce(100)
            consume(100, 7)
        case "changed":
            produce(100, acks=1, enable_idempotence=False, compression_type="gzip")
            consume(100, 7, fetch_max_wait_ms=250)
        case "idempotent":
            produce(100, enable_idempotence=True)
        case "transactional":
            transactions()
        case "group-classic":
            members()
        case "compression":
            for codec in CODECS:
                produce(20, compression_type=None if codec == "none" else codec)
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
    main()
