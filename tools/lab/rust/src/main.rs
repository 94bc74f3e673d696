//! rskafka behind TLS, with a login: `lab-rskafka SERVER CERTIFICATE USER PASSWORD`.
//!
//! rustls adds the secrets of its connections to the file that SSLKEYLOGFILE names. No groups: the client has none.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use rustls::pki_types::{pem::PemObject, CertificateDer};
use rustls::{ClientConfig, KeyLogFile, RootCertStore};

type Failure = Box<dyn std::error::Error>;

const TOPIC: &str = "rskafka-orders";
const COUNT: i64 = 20;
const WAIT_MS: i32 = 5_000;
const MADE_MS: i64 = 1_790_000_000_000;
const CODECS: [(&str, Compression); 5] = [
    ("none", Compression::NoCompression),
    ("gzip", Compression::Gzip),
    ("lz4", Compression::Lz4),
    ("snappy", Compression::Snappy),
    ("zstd", Compression::Zstd),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, server, certificate, user, password] = arguments.as_slice() else {
        return Err("SERVER CERTIFICATE USER PASSWORD are expected".into());
    };
    let client = ClientBuilder::new(vec![server.clone()])
        .client_id("lab-rskafka")
        .tls_config(tls(certificate)?)
        .sasl_config(SaslConfig::ScramSha256(Credentials::new(user.clone(), password.clone())))
        .build()
        .await?;
    everyday(&client).await
}

/// Trusts this certificate alone, and logs secrets.
fn tls(certificate: &str) -> Result<Arc<ClientConfig>, Failure> {
    let mut trusted = RootCertStore::empty();
    trusted.add(CertificateDer::from_pem_file(certificate)?)?;
    let mut config = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(Arc::new(config))
}

async fn everyday(client: &Client) -> Result<(), Failure> {
    let controller = client.controller_client()?;
    controller.create_topic(TOPIC, 1, 1, WAIT_MS).await?;
    let partition = client.partition_client(TOPIC, 0, UnknownTopicHandling::Retry).await?;
    for (name, codec) in CODECS {
        partition.produce(orders(name), codec).await?;
    }
    consume(&partition).await?;
    client.list_topics().await?;
    partition.delete_records(COUNT, WAIT_MS).await?;
    controller.delete_topic(TOPIC, WAIT_MS).await?;
    Ok(())
}

fn orders(codec: &str) -> Vec<Record> {
    let order = |n: i64| Record {
        key: Some(format!("customer-{}", n % 7).into_bytes()),
        value: Some(format!("order {n}: colander colander colander").into_bytes()),
        headers: BTreeMap::from([("codec".to_owned(), codec.as_bytes().to_vec())]),
        timestamp: DateTime::from_timestamp_millis(MADE_MS + n).expect("a time of this century"),
    };
    (0..COUNT).map(order).collect()
}

async fn consume(partition: &PartitionClient) -> Result<(), Failure> {
    let mut next = partition.get_offset(OffsetAt::Earliest).await?;
    let end = partition.get_offset(OffsetAt::Latest).await?;
    while next < end {
        let (records, _) = partition.fetch_records(next, 1..1_000_000, 100).await?;
        next = records.last().map_or(next, |last| last.offset + 1);
    }
    Ok(())
}
