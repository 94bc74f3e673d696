//go:build earlier

package main

import "github.com/twmb/franz-go/pkg/kgo"

// serverSide is what releases without KIP-848 lack.
func serverSide() []kgo.Opt {
	panic("no KIP-848")
}
