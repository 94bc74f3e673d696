// segmentio/kafka-go in the scenarios of the survey.
package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"kdissect/lab/survey/task"
)

var background = context.Background()

func login() sasl.Mechanism {
	switch task.Mechanism {
	case "":
		return nil
	case "PLAIN":
		return plain.Mechanism{Username: task.Alice, Password: task.Secret}
	}
	return task.Must1(scram.Mechanism(scram.SHA256, task.Alice, task.Secret))
}

func writer() *kafka.Writer {
	made := &kafka.Writer{Addr: kafka.TCP(task.Servers), Topic: task.Topic}
	if mechanism, config := login(), task.TLS(); mechanism != nil || config != nil {
		made.Transport = &kafka.Transport{SASL: mechanism, TLS: config}
	}
	return made
}

func messages(count, words int) []kafka.Message {
	made := make([]kafka.Message, count)
	for n := range made {
		made[n].Key, made[n].Value = task.Order(n, words)
	}
	return made
}

func produce(count, words int, change func(*kafka.Writer)) {
	producer := writer()
	if change != nil {
		change(producer)
	}
	task.Must(producer.WriteMessages(background, messages(count, words)...))
	task.Must(producer.Close())
}

// produceSlowly writes each record by a call of its own: such a call returns when the record is written.
func produceSlowly() {
	producer, calls := writer(), sync.WaitGroup{}
	for _, message := range messages(40, 12) {
		calls.Go(func() { task.Must(producer.WriteMessages(background, message)) })
		time.Sleep(20 * time.Millisecond)
	}
	calls.Wait()
	task.Must(producer.Close())
}

func reader(change func(*kafka.ReaderConfig)) *kafka.Reader {
	config := kafka.ReaderConfig{Brokers: []string{task.Servers}, Topic: task.Topic, GroupID: task.Group}
	if mechanism, secure := login(), task.TLS(); mechanism != nil || secure != nil {
		config.Dialer = &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true, SASLMechanism: mechanism, TLS: secure}
	}
	if change != nil {
		change(&config)
	}
	return kafka.NewReader(config)
}

func drain(member *kafka.Reader, count int) {
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	read := make([]kafka.Message, 0, count)
	for len(read) < count {
		read = append(read, task.Must1(member.FetchMessage(ctx)))
	}
	task.Must(member.CommitMessages(ctx, read...))
}

func consume(count int, seconds float64, change func(*kafka.ReaderConfig)) {
	member := reader(change)
	drain(member, count)
	time.Sleep(time.Duration(seconds * 1e9))
	task.Must(member.Close())
}

// members: a second member comes and goes.
func members() {
	produce(20, 12, nil)
	first := reader(nil)
	drain(first, 20)
	second := reader(nil)
	time.Sleep(7 * time.Second)
	task.Must(second.Close())
	time.Sleep(4 * time.Second)
	task.Must(first.Close())
}

// steadily produces and consumes until standard input ends.
func steadily() {
	ended, producer, member := task.InputEnds(), writer(), reader(nil)
	producer.BatchTimeout = 10 * time.Millisecond
	ctx, stop := context.WithCancel(background)
	defer stop()
	go func() {
		for ctx.Err() == nil {
			_, _ = member.ReadMessage(ctx)
		}
	}()
	for _, message := range messages(10_000, 3) {
		select {
		case <-ended:
			stop()
			task.Must(producer.Close())
			task.Must(member.Close())
			return
		default:
			_ = producer.WriteMessages(background, message)
			time.Sleep(350 * time.Millisecond)
		}
	}
}

// faulted goes on after errors, and tells of each. Such a call returns when the record is written.
func faulted() {
	producer, calls, failed := writer(), sync.WaitGroup{}, atomic.Int64{}
	ctx, cancel := context.WithTimeout(background, task.DeliveredTime)
	for _, message := range messages(task.FaultedCount, 12) {
		calls.Go(func() {
			if err := producer.WriteMessages(ctx, message); err != nil {
				failed.Add(1)
				task.Told("not delivered", err)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	calls.Wait()
	cancel()
	task.Must(producer.Close())
	member := reader(nil)
	ctx, cancel = context.WithTimeout(background, task.SeenTime)
	defer cancel()
	var read []kafka.Message
	for len(read) < task.FaultedCount-int(failed.Load()) && ctx.Err() == nil {
		message, err := member.FetchMessage(ctx)
		if err == nil {
			read = append(read, message)
		} else if ctx.Err() == nil {
			task.Told("thrown", err)
		}
	}
	if err := member.CommitMessages(background, read...); err != nil {
		task.Told("thrown", err)
	}
	task.Must(member.Close())
	task.Told("seen", len(read))
}

func refused() {
	producer := writer()
	producer.Transport = &kafka.Transport{SASL: plain.Mechanism{Username: task.Alice, Password: task.Wrong}}
	ctx, cancel := context.WithTimeout(background, task.GiveUp)
	defer cancel()
	task.Refused(producer.WriteMessages(ctx, messages(1, 3)...))
}

func main() {
	switch task.Scenario {
	case "plain":
		produce(100, 12, nil)
		consume(100, 7, nil)
	case "changed":
		produce(100, 12, func(w *kafka.Writer) { w.RequiredAcks, w.Compression = kafka.RequireAll, kafka.Gzip })
		consume(100, 7, func(c *kafka.ReaderConfig) { c.MaxWait = 250 * time.Millisecond })
	case "group-classic":
		members()
	case "compression":
		codecs := []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd}
		for _, codec := range codecs {
			produce(20, 12, func(w *kafka.Writer) { w.Compression = codec })
		}
		consume(20*len(codecs), 0, nil)
	case "large-batches":
		produce(100, 700, nil)
		consume(100, 0, nil)
	case "slow-broker":
		produceSlowly()
		consume(40, 0, nil)
	case "broker-restarted", "leader-moved":
		steadily()
	case "faulted":
		faulted()
	case "auth-refused":
		refused()
	}
}
