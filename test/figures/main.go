// Command figures measures a control plane as its users meet it, and kube-apiserver with etcd beside it in the same run: the time from exec to the first Pod, memory,
// CPU time of the servers for each Pod that is created over TLS, and a thousand watchers.
//
//	go run ./test/figures -bayplan bin/bayplan -reference "$(build/reference.sh kube-apiserver etcd)"
//
// Every process listens on loopback only and ends with the program. The figures go to stdout as a table; what is compared is a ratio, since machines are noisy.
//
//	plane.go     a control plane that runs: processes, client, what they use
//	bayplan.go   ours
//	peer.go      kube-apiserver and etcd
//	measure.go   what is measured
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	bayplan, reference string
	pods, created      int
	workers            int
	idle               time.Duration
	watchers, changes  int
	rounds             int
}

func main() {
	var o options
	flag.StringVar(&o.bayplan, "bayplan", "bin/bayplan", "The program to measure.")
	flag.StringVar(&o.reference, "reference", "", "Folder with kube-apiserver and etcd; without it only bayplan is measured.")
	flag.IntVar(&o.rounds, "rounds", 5, "How often each is started; times are medians.")
	flag.IntVar(&o.created, "created", 3000, "How many Pods are created to measure CPU time.")
	flag.IntVar(&o.pods, "pods", 10000, "How many Pods are there when memory and restart are measured.")
	flag.IntVar(&o.workers, "workers", 4, "How many Pods are created at once.")
	flag.DurationVar(&o.idle, "idle", 5*time.Minute, "How long a server is idle before its memory is measured, for a minute.")
	flag.IntVar(&o.watchers, "watchers", 1000, "How many watch one resource.")
	flag.IntVar(&o.changes, "changes", 500, "How many changes they see, 50 a second.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	planes := []maker{bayplan{o.bayplan}}
	if o.reference != "" {
		planes = append(planes, peer{o.reference})
	}
	for _, p := range planes {
		if err := measure(ctx, o, p); err != nil {
			return fmt.Errorf("%s: %w", p.name(), err)
		}
	}
	return nil
}
