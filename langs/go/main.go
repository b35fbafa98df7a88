// The tasks of `wrote langs` in Go, using the packages os and bufio.
//
// An os.File has no buffer: every Write is a system call. bufio's Writer and Reader each have a
// buffer of 4096 bytes (defaultBufSize, bufio/bufio.go).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"
)

// answer is the program's output.
type answer struct {
	ElapsedNs []int64 `json:"elapsed_ns"`
	Bytes     uint64  `json:"bytes"`
	Sum       *uint64 `json:"sum,omitempty"`
}

func writeBytes(path string, size uint64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close() // after an error; closing twice does no harm
	writer := bufio.NewWriter(file)
	for i := uint64(0); i < size; i++ {
		if err := writer.WriteByte(byte(i)); err != nil {
			return err
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return file.Close()
}

func readBytes(path string) (count, sum uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	for {
		b, err := reader.ReadByte()
		if err == io.EOF {
			return count, sum, nil
		}
		if err != nil {
			return 0, 0, err
		}
		count++
		sum += uint64(b)
	}
}

// save is os.WriteFile: open, one Write, close.
func save(path string, text []byte) error {
	return os.WriteFile(path, text, 0o644)
}

// saveSync does the same with Sync, which is fsync(2), before it closes the file. os.WriteFile has
// no option for that.
func saveSync(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

func appendLines(path string, line []byte, count uint64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	writer := bufio.NewWriter(file)
	for i := uint64(0); i < count; i++ {
		if _, err := writer.Write(line); err != nil {
			return err
		}
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// makeText returns the letters a to z, repeated.
func makeText(size uint64) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte('a' + i%26)
	}
	return text
}

// timed adds the time of one run. time.Now also reads the monotonic clock, which Since uses.
func (a *answer) timed(run func() error) error {
	start := time.Now()
	err := run()
	a.ElapsedNs = append(a.ElapsedNs, time.Since(start).Nanoseconds())
	return err
}

// task returns a function that runs a task once. It makes the untimed preparations before it
// returns.
func task(name, path string, size, count uint64, a *answer) (func() error, error) {
	switch name {
	case "bytes-write":
		return func() error { return writeBytes(path, size) }, nil
	case "bytes-read":
		a.Sum = new(uint64)
		return func() (err error) {
			a.Bytes, *a.Sum, err = readBytes(path)
			return err
		}, nil
	case "save":
		text := makeText(size)
		return func() error { return save(path, text) }, nil
	case "save-sync":
		text := makeText(size)
		return func() error { return saveSync(path, text) }, nil
	case "lines":
		line := append(makeText(size-1), '\n')
		a.Bytes = size * count
		return func() error { return appendLines(path, line, count) }, nil
	}
	return nil, fmt.Errorf("unknown task: %s", name)
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("usage: program TASK PATH SIZE COUNT")
	}
	size, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	count, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	if size == 0 || count == 0 {
		return fmt.Errorf("SIZE and COUNT must be above 0")
	}
	a := answer{Bytes: size}
	once, err := task(args[0], args[1], size, count, &a)
	if err != nil {
		return err
	}
	timings := count
	if args[0] == "lines" {
		timings = 1
	}
	for i := uint64(0); i < timings; i++ {
		if err := a.timed(once); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func main() {
	log.SetFlags(0) // no date before the message
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
