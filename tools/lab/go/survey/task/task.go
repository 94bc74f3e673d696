// Package task has what the Go programs of the survey share: arguments, records, when to end.
package task

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"
)

const (
	Alice  = "alice"
	Wrong  = "not-her-secret"
	GiveUp = 8 * time.Second
)

var Servers, Scenario, Topic, Group = os.Args[1], os.Args[2], os.Args[3], os.Args[4]

// Order is the key and the value of a record.
func Order(n, words int) ([]byte, []byte) {
	return fmt.Appendf(nil, "customer-%d", n%7), fmt.Appendf(nil, "order %d: %s", n, strings.Repeat("teacup ", words))
}

func Must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Must1[T any](value T, err error) T {
	Must(err)
	return value
}

// Refused fails unless a login was refused.
func Refused(err error) {
	if err == nil {
		log.Fatal("not refused")
	}
	fmt.Fprintln(os.Stderr, err)
}

// InputEnds is closed when standard input ends.
func InputEnds() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	return ended
}
