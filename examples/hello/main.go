// Command hello is a small web server for trying a cluster out: it answers with its host name and the address of its client. Arguments let it misbehave on purpose:
//
//	hello                     serve on port 8080
//	hello burn                use all the CPU that there is
//	hello eat MEBIBYTES       use that much memory and keep it
//	hello exit CODE           end with that code
//	hello fill MEBIBYTES      write a file of that size and keep it
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return serve()
	}
	switch args[0] {
	case "burn":
		return burn()
	case "eat", "exit", "fill":
		if len(args) != 2 {
			return fmt.Errorf("%s wants a number", args[0])
		}
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		switch args[0] {
		case "exit":
			os.Exit(n)
		case "fill":
			return fill(n)
		}
		return eat(n)
	}
	return fmt.Errorf("unknown argument %q", args[0])
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 5 * time.Second}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s from %s", r.Method, r.URL.Path, r.RemoteAddr)
		fmt.Fprintf(w, "hello from %s to %s\n", host, r.RemoteAddr)
	})
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		log.Print("stopping")
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(end)
	})
	log.Printf("%s serves on %s", host, server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// burn keeps every processor busy.
func burn() error {
	for range runtime.NumCPU() {
		go func() {
			for x := uint64(1); ; x++ {
				x ^= x << 13
			}
		}()
	}
	select {}
}

// eat takes memory step by step, and touches it, so that the kernel has to give it.
func eat(mebibytes int) error {
	var eaten [][]byte
	for range mebibytes {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
		eaten = append(eaten, block)
	}
	log.Printf("ate %d MiB", len(eaten))
	untilStopped()
	runtime.KeepAlive(eaten)
	return nil
}

// fill takes disk space beside the image.
func fill(mebibytes int) error {
	if err := os.WriteFile("/filled", make([]byte, mebibytes<<20), 0o600); err != nil {
		return err
	}
	log.Printf("filled %d MiB", mebibytes)
	untilStopped()
	return nil
}

// untilStopped returns when the process is told to end.
func untilStopped() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	<-ctx.Done()
}
