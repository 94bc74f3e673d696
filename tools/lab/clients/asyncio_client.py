"""aiokafka: everyday life."""

import asyncio
import ssl
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
TOPIC, GROUP = "aiokafka-orders", "aiokafka-billing"


async def produce(servers: str, codec: str | None, **tls: object) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=servers, compression_type=codec, linger_ms=20, **tls)
    await producer.start()
    sends = [
        await producer.send(
            TOPIC, b"spoon " * 12, key=b"customer-%d" % (n % 7), headers=[("codec", str(codec).encode())]
        )
        for n in range(20)
    ]
    await asyncio.gather(*sends)
    await producer.stop()


async def consume(servers: str, count: int, **tls: object) -> None:
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=servers, group_id=GROUP, auto_offset_reset="earliest",
                                enable_auto_commit=False, fetch_max_wait_ms=100, **tls)  # fmt: skip
    await consumer.start()
    for _ in range(count):
        await asyncio.wait_for(consumer.getone(), 20)
    await consumer.commit()
    await consumer.end_offsets(list(consumer.assignment()))
    await consumer.stop()


async def main(servers: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers, client_id="aiokafka-admin")
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 2, 1)])
    codecs = [codec for codec in CODECS if codec not in sys.argv[3:]]
    for codec in codecs:
        await produce(servers, codec)
    await consume(servers, 20 * len(codecs))
    await admin.describe_topics([TOPIC])
    await admin.list_consumer_groups()
    await admin.describe_consumer_groups([GROUP])
    await admin.list_consumer_group_offsets(GROUP)
    await admin.delete_topics([TOPIC])
    await admin.close()


async def comparing(servers: str, topic: str, group: str, seconds: float) -> None:
    """What every client of the comparison does, with defaults: the topic comes to be when it is written to."""
    producer = AIOKafkaProducer(bootstrap_servers=servers)
    await producer.start()
    sends = [
        await producer.send(topic, f"order {n}: {'teacup ' * 12}".encode(), key=b"customer-%d" % (n % 7))
        for n in range(100)
    ]
    await asyncio.gather(*sends)
    await producer.stop()
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest")
    await consumer.start()
    for _ in range(100):
        await asyncio.wait_for(consumer.getone(), 20)
    await consumer.commit()
    await asyncio.sleep(seconds)
    await consumer.stop()


async def behind_tls(servers: str, **tls: object) -> None:
    """A day with less in it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers, **tls)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 1, 1)])
    for codec in (None, "zstd"):
        await produce(servers, codec, **tls)
    await consume(servers, 40, **tls)
    await admin.delete_topics([TOPIC])
    await admin.close()


def encrypted(servers: str, trusted: str) -> None:
    context = ssl.create_default_context(cafile=trusted)
    asyncio.run(behind_tls(servers, security_protocol="SSL", ssl_context=context))


def everyday(servers: str) -> None:
    asyncio.run(main(servers))


if __name__ == "__main__":
    if sys.argv[2] == "compare":
        asyncio.run(comparing(sys.argv[1], sys.argv[3], sys.argv[4], float(sys.argv[5])))
    else:
        globals()[sys.argv[2]](sys.argv[1], *([sys.argv[3]] if sys.argv[2] == "encrypted" else []))
