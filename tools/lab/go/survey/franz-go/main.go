// franz-go in the scenarios of the survey.
package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kdissect/lab/survey/task"
)

var background = context.Background()

func login() []kgo.Opt {
	var options []kgo.Opt
	switch task.Mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: task.Alice, Pass: task.Secret}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: task.Alice, Pass: task.Secret}.AsSha256Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: task.Token}.AsMechanism()))
	}
	if config := task.TLS(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	return options
}

func client(options ...kgo.Opt) *kgo.Client {
	options = append(login(), options...)
	return task.Must1(kgo.NewClient(append(options, kgo.SeedBrokers(task.Servers))...))
}

func record(n, words int) *kgo.Record {
	key, value := task.Order(n, words)
	return &kgo.Record{Topic: task.Topic, Key: key, Value: value}
}

func send(producer *kgo.Client, count, words int, pause time.Duration) {
	for n := range count {
		producer.Produce(background, record(n, words), func(_ *kgo.Record, err error) { task.Must(err) })
		time.Sleep(pause)
	}
	task.Must(producer.Flush(background))
}

func produce(count, words int, pause time.Duration, options ...kgo.Opt) {
	producer := client(options...)
	send(producer, count, words, pause)
	producer.Close()
}

func consumer(options ...kgo.Opt) *kgo.Client {
	return client(append(options, kgo.ConsumeTopics(task.Topic), kgo.ConsumerGroup(task.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
}

func drain(member *kgo.Client, count int) {
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	for seen := 0; seen < count; {
		fetches := member.PollFetches(ctx)
		task.Must(fetches.Err())
		seen += fetches.NumRecords()
	}
	task.Must(member.CommitUncommittedOffsets(ctx))
}

func poll(member *kgo.Client, wait time.Duration) {
	ctx, cancel := context.WithTimeout(background, wait)
	defer cancel()
	if err := member.PollFetches(ctx).Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		time.Sleep(wait)
	}
}

func stay(seconds float64, member *kgo.Client) {
	for deadline := time.Now().Add(time.Duration(seconds * 1e9)); time.Now().Before(deadline); {
		poll(member, 100*time.Millisecond)
	}
}

func consume(count int, seconds float64, options ...kgo.Opt) {
	member := consumer(options...)
	drain(member, count)
	stay(seconds, member)
	member.Close()
}

// members: a second member comes and goes.
func members(options ...kgo.Opt) {
	produce(20, 12, 0)
	first := consumer(options...)
	drain(first, 20)
	done := make(chan struct{})
	go func() {
		second := consumer(options...)
		stay(6, second)
		second.Close()
		close(done)
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
			poll(first, 100*time.Millisecond)
		}
	}
	stay(4, first)
	first.Close()
}

func transactions() {
	producer := client(kgo.TransactionalID(task.Group + "-teller"))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		task.Must(producer.BeginTransaction())
		send(producer, 10, 12, 0)
		task.Must(producer.EndTransaction(background, commit))
	}
	producer.Close()
	consume(20, 0, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// steadily produces and consumes until standard input ends.
func steadily() {
	ended, producer, member := task.InputEnds(), client(), consumer()
	for n := 0; ; n++ {
		select {
		case <-ended:
			task.Must(producer.Flush(background))
			task.Must(member.CommitUncommittedOffsets(background))
			producer.Close()
			member.Close()
			return
		default:
			producer.Produce(background, record(n, 3), nil)
			poll(member, 250*time.Millisecond)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// faulted goes on after errors, and tells of each.
func faulted() {
	ctx, cancel := context.WithTimeout(background, task.DeliveredTime)
	producer, failed := client(), atomic.Int64{}
	for n := range task.FaultedCount {
		producer.Produce(ctx, record(n, 12), func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Add(1)
				task.Told("not delivered", err)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	_ = producer.Flush(ctx)
	cancel()
	producer.Close()
	member, seen := consumer(), 0
	for deadline := time.Now().Add(task.SeenTime); seen < task.FaultedCount-int(failed.Load()) && time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(background, time.Second)
		fetches := member.PollFetches(ctx)
		cancel()
		for _, each := range fetches.Errors() {
			if !errors.Is(each.Err, context.DeadlineExceeded) {
				task.Told("thrown", each.Err)
			}
		}
		seen += fetches.NumRecords()
	}
	if err := member.CommitUncommittedOffsets(background); err != nil {
		task.Told("thrown", err)
	}
	member.Close()
	task.Told("seen", seen)
}

func refused() {
	producer := client(kgo.SASL(plain.Auth{User: task.Alice, Pass: task.Wrong}.AsMechanism()))
	ctx, cancel := context.WithTimeout(background, task.GiveUp)
	defer cancel()
	task.Refused(producer.ProduceSync(ctx, record(0, 3)).FirstErr())
}

func main() {
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
		kgo.Lz4Compression(), kgo.ZstdCompression()}
	switch task.Scenario {
	case "plain":
		produce(100, 12, 0)
		consume(100, 7)
	case "changed":
		produce(100, 12, 0, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),
			kgo.ProducerBatchCompression(kgo.GzipCompression()))
		consume(100, 7, kgo.FetchMaxWait(250*time.Millisecond))
	case "idempotent":
		produce(100, 12, 0)
	case "transactional":
		transactions()
	case "group-classic":
		members()
	case "group-kip848":
		members(serverSide()...)
	case "compression":
		for _, codec := range codecs {
			produce(20, 12, 0, kgo.ProducerBatchCompression(codec))
		}
		consume(20*len(codecs), 0)
	case "large-batches":
		produce(100, 700, 0)
		consume(100, 0)
	case "slow-broker":
		produce(40, 12, 20*time.Millisecond)
		consume(40, 0)
	case "broker-restarted", "leader-moved":
		steadily()
	case "faulted":
		faulted()
	case "auth-refused":
		refused()
	}
}
