//! rskafka in the scenarios of the survey: `survey SERVERS SCENARIO TOPIC GROUP`. It has no groups: a consumer reads
//! partitions that it names.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, OauthBearerCredentials, SaslConfig};
use rskafka::record::Record;
use rustls::pki_types::{pem::PemObject, CertificateDer};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{sleep, timeout};

type Failure = Box<dyn std::error::Error>;

const GIVE_UP: Duration = Duration::from_secs(8);
const FAULTED_COUNT: usize = 40;
const DELIVERED: Duration = Duration::from_secs(150);
const SEEN: Duration = Duration::from_secs(90);
const CODECS: [Compression; 5] = [
    Compression::NoCompression,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

struct Task {
    servers: String,
    topic: String,
    partitions: i32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, servers, scenario, topic, _group] = arguments.as_slice() else {
        return Err("SERVERS SCENARIO TOPIC GROUP are expected".into());
    };
    let partitions = if matches!(scenario.as_str(), "leader-moved" | "faulted") { 1 } else { 2 };
    let task = Task { servers: servers.clone(), topic: topic.clone(), partitions };
    let (plain, wait_ms) = (Compression::NoCompression, 500);
    match scenario.as_str() {
        "plain" => {
            task.produce(100, 12, plain).await?;
            task.consume(100, 7, wait_ms).await
        }
        "changed" => {
            task.produce(100, 12, Compression::Gzip).await?;
            task.consume(100, 7, 250).await
        }
        "compression" => {
            for codec in CODECS {
                task.produce(20, 12, codec).await?;
            }
            task.consume(20 * CODECS.len(), 0, wait_ms).await
        }
        "large-batches" => {
            task.produce(100, 700, plain).await?;
            task.consume(100, 0, wait_ms).await
        }
        "slow-broker" => {
            task.produce_slowly().await?;
            task.consume(40, 0, wait_ms).await
        }
        "broker-restarted" | "leader-moved" => task.steadily().await,
        "faulted" => task.faulted().await,
        "auth-refused" => task.refused().await,
        other => Err(other.into()),
    }
}

fn order(n: usize, words: usize) -> Record {
    Record {
        key: Some(format!("customer-{}", n % 7).into_bytes()),
        value: Some(format!("order {n}: {}", "teacup ".repeat(words)).into_bytes()),
        headers: BTreeMap::new(),
        timestamp: Utc::now(),
    }
}

/// Log in, and trust a certificate, as the environment says.
fn login(mut client: ClientBuilder) -> Result<ClientBuilder, Failure> {
    if let Ok(path) = std::env::var("LAB_TRUST") {
        let mut trusted = RootCertStore::empty();
        trusted.add(CertificateDer::from_pem_file(path)?)?;
        client = client.tls_config(Arc::new(ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth()));
    }
    let named = || Credentials::new("alice".into(), "alice-secret".into());
    Ok(match std::env::var("LAB_MECHANISM").unwrap_or_default().as_str() {
        "PLAIN" => client.sasl_config(SaslConfig::Plain(named())),
        "SCRAM-SHA-256" => client.sasl_config(SaslConfig::ScramSha256(named())),
        "OAUTHBEARER" => client.sasl_config(SaslConfig::Oauthbearer(OauthBearerCredentials {
            callback: Arc::new(|| Box::pin(async { Ok(std::env::var("LAB_TOKEN")?) })),
            authz_id: None,
            bearer_kvs: Vec::new(),
        })),
        _ => client,
    })
}

impl Task {
    async fn connect(&self) -> Result<(Client, Vec<Arc<PartitionClient>>), Failure> {
        let client = login(ClientBuilder::new(vec![self.servers.clone()]))?.build().await?;
        let mut partitions = Vec::new();
        for number in 0..self.partitions {
            partitions.push(Arc::new(client.partition_client(&self.topic, number, UnknownTopicHandling::Retry).await?));
        }
        Ok((client, partitions))
    }

    /// One call for each partition: the client has no partitioner.
    async fn produce(&self, count: usize, words: usize, codec: Compression) -> Result<(), Failure> {
        let (_client, partitions) = self.connect().await?;
        for (number, partition) in partitions.iter().enumerate() {
            let records = (0..count).filter(|n| n % partitions.len() == number).map(|n| order(n, words)).collect();
            partition.produce(records, codec).await?;
        }
        Ok(())
    }

    async fn produce_slowly(&self) -> Result<(), Failure> {
        let (_client, partitions) = self.connect().await?;
        let mut calls = Vec::new();
        for n in 0..40 {
            let partition = Arc::clone(&partitions[n % partitions.len()]);
            calls.push(tokio::spawn(async move { partition.produce(vec![order(n, 12)], Compression::NoCompression).await }));
            sleep(Duration::from_millis(20)).await;
        }
        for call in calls {
            call.await??;
        }
        Ok(())
    }

    async fn consume(&self, count: usize, seconds: u64, wait_ms: i32) -> Result<(), Failure> {
        let (_client, partitions) = self.connect().await?;
        let mut next = Vec::new();
        for partition in &partitions {
            next.push(partition.get_offset(OffsetAt::Earliest).await?);
        }
        let mut seen = 0;
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        while seen < count || tokio::time::Instant::now() < end {
            for (partition, next) in partitions.iter().zip(&mut next) {
                let (records, _) = partition.fetch_records(*next, 1..1_000_000, wait_ms).await?;
                seen += records.len();
                *next = records.last().map_or(*next, |last| last.offset + 1);
            }
        }
        Ok(())
    }

    /// Produces and consumes until standard input ends.
    async fn steadily(&self) -> Result<(), Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            flag.store(true, Ordering::Relaxed);
        });
        let (_client, partitions) = self.connect().await?;
        let mut next = partitions[0].get_offset(OffsetAt::Earliest).await?;
        for n in 0.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            partitions[0].produce(vec![order(n, 3)], Compression::NoCompression).await?;
            let (records, _) = partitions[0].fetch_records(next, 1..1_000_000, 250).await?;
            next = records.last().map_or(next, |last| last.offset + 1);
            sleep(Duration::from_millis(350)).await;
        }
        Ok(())
    }

    /// Goes on after errors, and tells of each.
    async fn faulted(&self) -> Result<(), Failure> {
        let (_client, partitions) = self.connect().await?;
        let mut calls = Vec::new();
        for n in 0..FAULTED_COUNT {
            let partition = Arc::clone(&partitions[n % partitions.len()]);
            calls.push(tokio::spawn(timeout(DELIVERED, async move {
                partition.produce(vec![order(n, 12)], Compression::NoCompression).await
            })));
            sleep(Duration::from_millis(20)).await;
        }
        let mut expected = 0;
        for call in calls {
            match call.await? {
                Ok(Ok(_)) => expected += 1,
                Ok(Err(error)) => eprintln!("not delivered: {error}"),
                Err(_) => eprintln!("not delivered: no answer"),
            }
        }
        let (mut next, mut seen) = (vec![0; partitions.len()], 0);
        let end = tokio::time::Instant::now() + SEEN;
        while seen < expected && tokio::time::Instant::now() < end {
            for (partition, next) in partitions.iter().zip(&mut next) {
                match timeout(SEEN, partition.fetch_records(*next, 1..1_000_000, 500)).await {
                    Ok(Ok((records, _))) => {
                        seen += records.len();
                        *next = records.last().map_or(*next, |last| last.offset + 1);
                    }
                    Ok(Err(error)) => eprintln!("thrown: {error}"),
                    Err(_) => eprintln!("thrown: no answer"),
                }
            }
        }
        eprintln!("seen: {seen}");
        Ok(())
    }

    async fn refused(&self) -> Result<(), Failure> {
        let login = SaslConfig::Plain(Credentials::new("alice".into(), "not-her-secret".into()));
        let client = ClientBuilder::new(vec![self.servers.clone()]).sasl_config(login);
        match timeout(GIVE_UP, client.build()).await {
            Ok(Ok(_)) => Err("not refused".into()),
            Ok(Err(error)) => Ok(eprintln!("{error}")),
            Err(_) => Ok(eprintln!("no answer")),
        }
    }
}
