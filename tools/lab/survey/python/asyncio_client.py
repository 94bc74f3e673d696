"""aiokafka in the scenarios of the survey."""

import asyncio
import ssl
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

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


class Token(AbstractTokenProvider):
    async def token(self) -> str:
        return TOKEN


def common() -> dict[str, object]:
    if PROTOCOL == "PLAINTEXT":
        return {"bootstrap_servers": SERVERS}
    return {
        "bootstrap_servers": SERVERS, "security_protocol": PROTOCOL,
        "ssl_context": ssl.create_default_context(cafile=TRUST) if TRUST else None,
        "sasl_mechanism": MECHANISM or "PLAIN", "sasl_plain_username": ALICE, "sasl_plain_password": PASSWORD,
        "sasl_oauth_token_provider": Token(),
    }  # fmt: skip


async def send(producer: AIOKafkaProducer, count: int, words: int = 12, pause: float = 0) -> None:
    sent = []
    for n in range(count):
        key, value = order(n, words)
        sent.append(await producer.send(TOPIC, value, key=key))
        await asyncio.sleep(pause)
    await asyncio.gather(*sent)


async def produce(count: int, words: int = 12, pause: float = 0, **settings: object) -> None:
    async with AIOKafkaProducer(**common(), **settings) as producer:
        await send(producer, count, words, pause)


def consumer(**settings: object) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(TOPIC, **common(), group_id=GROUP, auto_offset_reset="earliest", **settings)


async def drain(member: AIOKafkaConsumer, count: int) -> None:
    for _ in range(count):
        await asyncio.wait_for(member.getone(), 60)
    await member.commit()


async def consume(count: int, seconds: float = 0, **settings: object) -> None:
    async with consumer(**settings) as member:
        await drain(member, count)
        await asyncio.sleep(seconds)


async def members() -> None:
    """A second member comes and goes."""
    await produce(20)
    async with consumer() as first:
        await drain(first, 20)
        async with consumer() as second:
            deadline = time.monotonic() + 20
            while not second.assignment() and time.monotonic() < deadline:
                await asyncio.sleep(0.1)
            await asyncio.sleep(4)
        await asyncio.sleep(4)


async def transactions() -> None:
    async with AIOKafkaProducer(**common(), transactional_id=f"{GROUP}-teller") as producer:
        for commit in (True, False, True):
            await producer.begin_transaction()
            await send(producer, 10)
            await (producer.commit_transaction() if commit else producer.abort_transaction())
    await consume(20, isolation_level="read_committed")


async def steadily() -> None:
    """Produce and consume until standard input ends."""
    ended, n = input_ends(), 0
    async with AIOKafkaProducer(**common()) as producer, consumer() as member:
        while not ended.is_set():
            key, value = order(n, 3)
            await producer.send(TOPIC, value, key=key)
            await member.getmany(timeout_ms=250)
            await asyncio.sleep(0.1)
            n += 1
        await producer.flush()
        await member.commit()


async def faulted() -> None:
    """Go on after errors, and tell of each."""
    sent: list[asyncio.Future[object]] = []
    async with AIOKafkaProducer(**common()) as producer:
        for n in range(FAULTED_COUNT):
            key, value = order(n)
            sent.append(await producer.send(TOPIC, value, key=key))
            await asyncio.sleep(0.02)
        await asyncio.wait(sent, timeout=DELIVERED_SECONDS)
        failed = [each.exception() if each.done() else TimeoutError() for each in sent]
    for error in filter(None, failed):
        told("not delivered", error)
    seen, deadline = 0, time.monotonic() + SEEN_SECONDS
    async with consumer() as member:
        while seen < failed.count(None) and time.monotonic() < deadline:
            try:
                seen += sum(map(len, (await member.getmany(timeout_ms=100)).values()))
            except KafkaError as error:
                told("thrown", error)
                await asyncio.sleep(1)
        try:
            await member.commit()
        except KafkaError as error:
            told("thrown", error)
    told("seen", seen)


async def refused() -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": ALICE,
             "sasl_plain_password": WRONG}  # fmt: skip
    producer = AIOKafkaProducer(bootstrap_servers=SERVERS, **login)
    try:
        await asyncio.wait_for(producer.start(), GIVE_UP_SECONDS)
    except (KafkaError, TimeoutError) as error:
        print(error)
    else:
        raise AssertionError("not refused")
    finally:
        await producer.stop()


TROUBLES = {"broker-restarted": steadily, "leader-moved": steadily, "faulted": faulted, "auth-refused": refused}


async def main() -> None:
    match SCENARIO:
        case "plain":
            await produce(100)
            await consume(100, 7)
        case "changed":
            await produce(100, acks="all", compression_type="gzip")
            await consume(100, 7, fetch_max_wait_ms=250)
        case "idempotent":
            await produce(100, enable_idempotence=True)
        case "transactional":
            await transactions()
        case "group-classic":
            await members()
        case "compression":
            for codec in CODECS:
                await produce(20, compression_type=None if codec == "none" else codec)
            await consume(20 * len(CODECS))
        case "large-batches":
            await produce(100, 700)
            await consume(100)
        case "slow-broker":
            await produce(40, pause=0.02)
            await consume(40)
        case trouble:
            await TROUBLES[trouble]()


if __name__ == "__main__":
    asyncio.run(main())
