"""An object store on loopback, by moto: what S3 answers, in a process of its own."""

import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow.fs

REGION = "us-east-1"
_SERVER = """
import sys, threading, time
from moto import server
one_by_one, run = threading.Lock(), server.run_simple
def run_with_conditions(host, port, application, **settings):
    def answer(environment, start):
        if environment["PATH_INFO"].startswith("/careless-") and environment.pop("HTTP_IF_NONE_MATCH", None):
            time.sleep(0.2)
        if "HTTP_IF_NONE_MATCH" not in environment:
            return application(environment, start)
        with one_by_one:
            return application(environment, start)
    run(host, port, answer, **settings)
server.run_simple = run_with_conditions
server.main(sys.argv[1:])
"""
"""Moto's own server looks whether an object is there and writes it later: of two threads, both may."""


class ObjectStore(NamedTuple):
    """A running store, and what programs must have in their environment to find it."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_ACCESS_KEY_ID": "kdissect", "AWS_SECRET_ACCESS_KEY": "of-a-test",
            "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Meanwhile the store lets in nobody: it knows no user."""
        self._let_in("0")
        try:
            yield
        finally:
            self._let_in("inf")

    def _let_in(self, requests: str) -> None:
        """Have moto answer so many requests before it asks who makes them."""
        asked = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth", requests.encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(asked).close()

    def new_bucket(self, *, ignores_conditions: bool = False) -> str:
        """Create a bucket; return its name. One that `ignores_conditions` replaces objects, whatever `If-None-Match`
        says, and takes its time for it, as stores across a network do: requests that are made together then meet,
        however busy the machine is."""
        name = f"{'careless' if ignores_conditions else 'bucket'}-{uuid.uuid4().hex[:12]}"
        files = pyarrow.fs.S3FileSystem(
            access_key="kdissect", secret_key="of-a-test", endpoint_override=self.endpoint, region=REGION,
            allow_bucket_creation=True,
        )  # fmt: skip
        files.create_dir(name)
        return name


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a store."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-c", _SERVER, "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_for(port, process)
        yield ObjectStore(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"moto's server ended with exit code {process.returncode}")


def put(bucket: str, key: str, data: bytes) -> str:
    """Put an object into a bucket of the store that the environment names; return its URL."""
    files, _ = pyarrow.fs.FileSystem.from_uri(f"s3://{bucket}")
    with files.open_output_stream(f"{bucket}/{key}", compression=None) as file:
        file.write(data)
    return f"s3://{bucket}/{key}"
