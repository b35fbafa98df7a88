// Appends the lines of standard input to a log by go-redis, in pipelines and transactions, and
// reads them back.
package main

import (
	"bufio"
	"context"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// Commands of a pipeline or a transaction.
const window = 50

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Args[1], ReadTimeout: time.Minute})
	defer client.Close()

	// Waits for the first record before there is one.
	first := make(chan string)
	go func() {
		streams, err := client.XRead(ctx, &redis.XReadArgs{
			Streams: []string{"log", "0"}, Count: 1, Block: 0,
		}).Result()
		must(err)
		first <- streams[0].Messages[0].Values["message"].(string)
	}()

	var lines []string
	pipe, other := client.Pipeline(), client.TxPipeline()
	send := func() {
		_, err := pipe.Exec(ctx)
		must(err)
		pipe, other = other, pipe
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines = append(lines, input.Text())
		values := map[string]interface{}{"message": input.Text()}
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: "log", Values: values})
		if pipe.Len() == window {
			send()
		}
	}
	must(input.Err())
	if pipe.Len() > 0 {
		send()
	}

	if got := <-first; got != lines[0] {
		log.Fatalf("the first record is %q", got)
	}
	entries, err := client.XRange(ctx, "log", "-", "+").Result()
	must(err)
	length, err := client.XLen(ctx, "log").Result()
	must(err)
	if len(entries) != len(lines) || length != int64(len(lines)) {
		log.Fatalf("%d entries, a length of %d, %d lines", len(entries), length, len(lines))
	}
	for at, entry := range entries {
		if entry.Values["message"] != lines[at] {
			log.Fatalf("record %d is %v", at, entry.Values)
		}
	}
}
