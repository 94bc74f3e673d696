// Package task has what the Go programs of the survey share: arguments, how to log in, records, when to end.
package task

import (
	"crypto/tls"
	"crypto/x509"
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
	Secret = "alice-secret"
	GiveUp = 8 * time.Second

	FaultedCount  = 40
	DeliveredTime = 150 * time.Second
	SeenTime      = 90 * time.Second
)

var Servers, Scenario, Topic, Group = os.Args[1], os.Args[2], os.Args[3], os.Args[4]

// Mechanism and Token say how to log in; without a mechanism nobody does.
var Mechanism, Token = os.Getenv("LAB_MECHANISM"), os.Getenv("LAB_TOKEN")

// TLS trusts the certificate that the environment names; nil without one.
func TLS() *tls.Config {
	path := os.Getenv("LAB_TRUST")
	if path == "" {
		return nil
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(Must1(os.ReadFile(path)))
	return &tls.Config{RootCAs: trusted}
}

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

// Told says what a client told its application.
func Told(what string, said any) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, said)
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
