//go:build !earlier

package main

import "github.com/twmb/franz-go/pkg/kgo"

// serverSide chooses the protocol of KIP-848.
func serverSide() []kgo.Opt {
	return []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())}
}
