// The program nats-load publishes messages to a stream of nats-server by many connections, each
// with a window of messages without an answer, and prints its figures as a line of JSON.
package main

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	// The server is built of the same module.
	_ "github.com/nats-io/nats-server/v2/server"
)

type percentiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

type outcome struct {
	Bytes      int         `json:"bytes"`
	Operations int         `json:"operations"`
	ElapsedS   float64     `json:"elapsed_s"`
	CPUS       float64     `json:"cpu_s"`
	LatencyNS  percentiles `json:"latency_ns"`
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// publish sends count messages of one connection, and returns when each was acknowledged.
func publish(url string, window, count, size int) []int64 {
	connection, err := nats.Connect(url)
	must(err)
	defer connection.Close()
	stream, err := connection.JetStream(nats.PublishAsyncMaxPending(window))
	must(err)
	message := make([]byte, size)
	_, err = rand.Read(message)
	must(err)
	type sent struct {
		at     time.Time
		answer nats.PubAckFuture
	}
	var waits []int64
	inFlight := make(chan sent, window)
	done := make(chan struct{})
	go func() {
		for one := range inFlight {
			select {
			case <-one.answer.Ok():
				waits = append(waits, time.Since(one.at).Nanoseconds())
			case err := <-one.answer.Err():
				log.Fatal(err)
			}
		}
		close(done)
	}()
	for range count {
		at := time.Now()
		answer, err := stream.PublishAsync("events", message, nats.StallWait(time.Minute))
		must(err)
		inFlight <- sent{at, answer}
	}
	close(inFlight)
	<-done
	return waits
}

func main() {
	url := flag.String("url", nats.DefaultURL, "the server")
	connections := flag.Int("connections", 64, "connections")
	window := flag.Int("window", 100, "messages of a connection without an answer")
	messages := flag.Int("messages", 20000, "messages in all")
	size := flag.Int("size", 500, "bytes of a message")
	flag.Parse()

	connection, err := nats.Connect(*url)
	must(err)
	stream, err := connection.JetStream()
	must(err)
	_, err = stream.AddStream(&nats.StreamConfig{Name: "events", Storage: nats.FileStorage})
	must(err)

	each := *messages / *connections
	var all []int64
	var mutex sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range *connections {
		group.Go(func() {
			waits := publish(*url, *window, each, *size)
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, waits...)
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	slices.Sort(all)
	must(json.NewEncoder(os.Stdout).Encode(outcome{
		Bytes:      len(all) * *size,
		Operations: len(all),
		ElapsedS:   elapsed.Seconds(),
		LatencyNS:  percentiles{all[len(all)/2], all[len(all)*99/100]},
	}))
}
