// sarama in the scenarios of the survey.
package main

import (
	"context"
	"log"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"kdissect/lab/survey/task"
)

var servers = []string{task.Servers}

// conversation is a login by SCRAM.
type conversation struct{ *scram.ClientConversation }

func (c *conversation) Begin(user, password, authzID string) error {
	client, err := scram.SHA256.NewClient(user, password, authzID)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

// token gives the one that the environment has.
type token struct{}

func (token) Token() (*sarama.AccessToken, error) { return &sarama.AccessToken{Token: task.Token}, nil }

func login(c *sarama.Config) {
	if secure := task.TLS(); secure != nil {
		c.Net.TLS.Enable, c.Net.TLS.Config = true, secure
	}
	if task.Mechanism != "" {
		c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = true, task.Alice, task.Secret
		c.Net.SASL.Mechanism = sarama.SASLMechanism(task.Mechanism)
		c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{} }
		c.Net.SASL.TokenProvider = token{}
	}
}

func config(change func(*sarama.Config)) *sarama.Config {
	made := sarama.NewConfig()
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	login(made)
	if change != nil {
		change(made)
	}
	return made
}

func message(n, words int) *sarama.ProducerMessage {
	key, value := task.Order(n, words)
	return &sarama.ProducerMessage{Topic: task.Topic, Key: sarama.ByteEncoder(key), Value: sarama.ByteEncoder(value)}
}

// send waits until each message is acknowledged; errors are fatal where they are told so.
func send(producer sarama.AsyncProducer, count, words int, pause time.Duration) {
	done := make(chan struct{})
	go func() {
		for range count {
			select {
			case <-producer.Successes():
			case err := <-producer.Errors():
				log.Fatal(err)
			}
		}
		close(done)
	}()
	for n := range count {
		producer.Input() <- message(n, words)
		time.Sleep(pause)
	}
	<-done
}

func produce(count, words int, pause time.Duration, change func(*sarama.Config)) {
	producer := task.Must1(sarama.NewAsyncProducer(servers, config(change)))
	send(producer, count, words, pause)
	task.Must(producer.Close())
}

// member is a handler that counts records.
type member struct {
	group sarama.ConsumerGroup
	seen  atomic.Int64
	wants int64
	done  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		if m.seen.Add(1) == m.wants {
			session.Commit()
			close(m.done)
		}
	}
	return nil
}

// join starts a member; its `done` is closed when it has seen `wants` records.
func join(wants int, change func(*sarama.Config)) *member {
	ctx, stop := context.WithCancel(context.Background())
	joined := &member{wants: int64(wants), done: make(chan struct{}), stop: stop, ended: make(chan struct{})}
	joined.group = task.Must1(sarama.NewConsumerGroup(servers, task.Group, config(change)))
	go func() {
		for ctx.Err() == nil {
			if err := joined.group.Consume(ctx, []string{task.Topic}, joined); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
		close(joined.ended)
	}()
	return joined
}

func (m *member) leave() {
	m.stop()
	<-m.ended
	task.Must(m.group.Close())
}

func (m *member) drain() {
	select {
	case <-m.done:
	case <-time.After(time.Minute):
		log.Fatalf("%d of %d records", m.seen.Load(), m.wants)
	}
}

func consume(count int, seconds float64, change func(*sarama.Config)) {
	joined := join(count, change)
	joined.drain()
	time.Sleep(time.Duration(seconds * 1e9))
	joined.leave()
}

// members: a second member comes and goes.
func members() {
	produce(20, 12, 0, nil)
	first := join(20, nil)
	first.drain()
	second := join(-1, nil)
	time.Sleep(6 * time.Second)
	second.leave()
	time.Sleep(4 * time.Second)
	first.leave()
}

func transactions() {
	producer := task.Must1(sarama.NewAsyncProducer(servers, config(func(c *sarama.Config) {
		c.Producer.Transaction.ID = task.Group + "-teller"
		idempotent(c)
	})))
	for _, commit := range []bool{true, false, true} {
		task.Must(producer.BeginTxn())
		send(producer, 10, 12, 0)
		if commit {
			task.Must(producer.CommitTxn())
		} else {
			task.Must(producer.AbortTxn())
		}
	}
	task.Must(producer.Close())
	consume(20, 0, func(c *sarama.Config) { c.Consumer.IsolationLevel = sarama.ReadCommitted })
}

// idempotent asks for what an idempotent producer needs.
func idempotent(c *sarama.Config) {
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Net.MaxOpenRequests = 1
}

// steadily produces and consumes until standard input ends.
func steadily() {
	ended := task.InputEnds()
	producer := task.Must1(sarama.NewAsyncProducer(servers, config(nil)))
	go func() {
		for range producer.Successes() {
		}
	}()
	go func() {
		for range producer.Errors() {
		}
	}()
	joined := join(-1, nil)
	for n := 0; ; n++ {
		select {
		case <-ended:
			producer.AsyncClose()
			joined.leave()
			return
		case producer.Input() <- message(n, 3):
			time.Sleep(350 * time.Millisecond)
		}
	}
}

// faulted goes on after errors, and tells of each.
func faulted() {
	producer := task.Must1(sarama.NewAsyncProducer(servers, config(nil)))
	done, failed := make(chan struct{}), 0
	go func() {
		end := time.After(task.DeliveredTime)
		for range task.FaultedCount {
			select {
			case <-producer.Successes():
			case err := <-producer.Errors():
				failed++
				task.Told("not delivered", err.Err)
			case <-end:
				failed++
				task.Told("not delivered", "no answer")
			}
		}
		close(done)
	}()
	for n := range task.FaultedCount {
		producer.Input() <- message(n, 12)
		time.Sleep(20 * time.Millisecond)
	}
	<-done
	producer.AsyncClose()
	joined := join(task.FaultedCount-failed, func(c *sarama.Config) { c.Consumer.Return.Errors = true })
	go func() {
		for err := range joined.group.Errors() {
			task.Told("thrown", err)
		}
	}()
	select {
	case <-joined.done:
	case <-time.After(task.SeenTime):
	}
	joined.leave()
	task.Told("seen", joined.seen.Load())
}

func refused() {
	_, err := sarama.NewAsyncProducer(servers, config(func(c *sarama.Config) {
		c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = true, task.Alice, task.Wrong
	}))
	task.Refused(err)
}

func main() {
	switch task.Scenario {
	case "plain":
		produce(100, 12, 0, nil)
		consume(100, 7, nil)
	case "changed":
		produce(100, 12, 0, func(c *sarama.Config) {
			c.Producer.RequiredAcks, c.Producer.Compression = sarama.WaitForAll, sarama.CompressionGZIP
		})
		consume(100, 7, func(c *sarama.Config) { c.Consumer.MaxWaitTime = 250 * time.Millisecond })
	case "idempotent":
		produce(100, 12, 0, idempotent)
	case "transactional":
		transactions()
	case "group-classic":
		members()
	case "compression":
		codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy,
			sarama.CompressionLZ4, sarama.CompressionZSTD}
		for _, codec := range codecs {
			produce(20, 12, 0, func(c *sarama.Config) { c.Producer.Compression = codec })
		}
		consume(20*len(codecs), 0, nil)
	case "large-batches":
		produce(100, 700, 0, nil)
		consume(100, 0, nil)
	case "slow-broker":
		produce(40, 12, 20*time.Millisecond, nil)
		consume(40, 0, nil)
	case "broker-restarted", "leader-moved":
		steadily()
	case "faulted":
		faulted()
	case "auth-refused":
		refused()
	}
}
