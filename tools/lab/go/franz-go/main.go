// franz-go: everyday life in the newest versions it has. `franz-go-client SERVERS [CERTIFICATE]`: with the certificate of
// the broker, behind TLS.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic = "franz-orders"
	group = "franz-billing"
	count = 20
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must1[T any](value T, err error) T {
	must(err)
	return value
}

// refused prints what the broker did not want; its answer is on the wire all the same.
func refused(_ any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func client(servers string, options ...kgo.Opt) *kgo.Client {
	if len(os.Args) > 2 {
		trusted, pem := x509.NewCertPool(), must1(os.ReadFile(os.Args[2]))
		trusted.AppendCertsFromPEM(pem)
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: trusted}))
	}
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(servers), kgo.FetchMaxWait(100*time.Millisecond))...)
	must(err)
	return client
}

func orders(codec string) []*kgo.Record {
	var records []*kgo.Record
	for n := range count {
		records = append(records, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "customer-%d", n%7), Value: fmt.Appendf(nil, "order %d: sieve sieve sieve sieve", n),
			Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(codec)}},
		})
	}
	return records
}

func produce(ctx context.Context, servers string) int {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		producer := client(servers, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
		must(producer.ProduceSync(ctx, orders(name)...).FirstErr())
		producer.Close()
	}
	teller := client(servers, kgo.TransactionalID("franz-teller"))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		must(teller.BeginTransaction())
		must(teller.ProduceSync(ctx, orders("transaction")...).FirstErr())
		must(teller.EndTransaction(ctx, commit))
	}
	teller.Close()
	return count * (len(codecs) + 1)
}

func consume(ctx context.Context, servers string, sent int) {
	consumer := client(servers, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for seen := 0; seen < sent; {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err())
		seen += fetches.NumRecords()
	}
	must(consumer.CommitUncommittedOffsets(ctx))
	must(consumer.LeaveGroupContext(ctx))
	consumer.Close()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	servers := os.Args[1]
	admin := kadm.NewClient(client(servers, kgo.ClientID("franz-admin")))
	refused(admin.CreateTopic(ctx, 2, 1, nil, topic))
	consume(ctx, servers, produce(ctx, servers))
	refused(admin.Metadata(ctx, topic))
	refused(admin.ListStartOffsets(ctx, topic))
	refused(admin.ListEndOffsets(ctx, topic))
	refused(admin.ListMaxTimestampOffsets(ctx, topic))
	refused(admin.ListGroups(ctx))
	refused(admin.DescribeGroups(ctx, group))
	refused(admin.FetchOffsets(ctx, group))
	refused(admin.DescribeTopicConfigs(ctx, topic))
	refused(admin.DescribeAllLogDirs(ctx, nil))
	refused(admin.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}}}))
	refused(admin.ListTransactions(ctx, nil, nil))
	refused(admin.DescribeTransactions(ctx, "franz-teller"))
	refused(admin.OffsetForLeaderEpoch(ctx, offsetForLeaderEpoch()))
	refused(admin.DescribeUserSCRAMs(ctx))
	refused(admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, kadm.TopicsSet{topic: {0: {}}}))
	refused(admin.ListPartitionReassignments(ctx, kadm.TopicsSet{topic: {0: {}}}))
	refused(admin.CreatePartitions(ctx, 1, topic))
	refused(admin.DeleteGroups(ctx, group))
	refused(admin.DeleteTopics(ctx, topic))
	admin.Close()
}

func offsetForLeaderEpoch() kadm.OffsetForLeaderEpochRequest {
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(topic, 0, 0)
	return request
}
