// sarama as it was used with old clusters: `sarama-client SERVERS RELEASE`, for example 127.0.0.1:9092 1.0.0.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const count = 10

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// refused prints what the broker did not want; its answer is on the wire all the same.
func refused(_ any, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func config(version sarama.KafkaVersion) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = version
	config.ClientID = "sarama-" + version.String()
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	return config
}

func produce(servers []string, version sarama.KafkaVersion, topic string) int {
	sent := 0
	for name, codec := range codecs {
		if codec == sarama.CompressionZSTD && !version.IsAtLeast(sarama.V2_1_0_0) {
			continue
		}
		settings := config(version)
		settings.Producer.Compression = codec
		producer, err := sarama.NewSyncProducer(servers, settings)
		must(err)
		var messages []*sarama.ProducerMessage
		for n := range count {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("customer-%d", n%7)),
				Value:   sarama.StringEncoder(fmt.Sprintf("order %d: whisk whisk whisk whisk whisk", n)),
				Headers: []sarama.RecordHeader{{Key: []byte("codec"), Value: []byte(name)}},
			})
		}
		must(producer.SendMessages(messages))
		must(producer.Close())
		sent += count
	}
	return sent
}

type drain struct {
	left chan int
	stop context.CancelFunc
}

func (drain) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (drain) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (d drain) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "seen")
		left := <-d.left - 1
		d.left <- left
		if left == 0 {
			session.Commit()
			d.stop()
		}
	}
	return nil
}

func consume(servers []string, version sarama.KafkaVersion, topic, group string, sent int) {
	consumer, err := sarama.NewConsumerGroup(servers, group, config(version))
	must(err)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	handler := drain{make(chan int, 1), stop}
	handler.left <- sent
	must(consumer.Consume(ctx, []string{topic}, handler))
	must(consumer.Close())
	if left := <-handler.left; left > 0 {
		log.Fatalf("%d of %d records left", left, sent)
	}
}

func main() {
	servers := []string{os.Args[1]}
	version, err := sarama.ParseKafkaVersion(os.Args[2])
	must(err)
	topic, group := "sarama-"+os.Args[2], "sarama-group-"+os.Args[2]
	admin, err := sarama.NewClusterAdmin(servers, config(version))
	must(err)
	must(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	consume(servers, version, topic, group, produce(servers, version, topic))
	refused(admin.DescribeTopics([]string{topic}))
	refused(nil, admin.CreatePartitions(topic, 2, nil, false))
	refused(admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}))
	hour := "3600000"
	refused(nil, admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &hour}, true))
	refused(admin.DescribeLogDirs([]int32{1}))
	refused(admin.ListConsumerGroups())
	refused(admin.DescribeConsumerGroups([]string{group}))
	refused(admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}}))
	refused(admin.ListAcls(sarama.AclFilter{ResourceType: sarama.AclResourceAny, Operation: sarama.AclOperationAny,
		PermissionType: sarama.AclPermissionAny, ResourcePatternTypeFilter: sarama.AclPatternAny}))
	refused(nil, admin.DeleteRecords(topic, map[int32]int64{0: 1}))
	refused(nil, admin.DeleteConsumerGroup(group))
	must(admin.DeleteTopic(topic))
	must(admin.Close())
}
