// The app of the agent's tests: it does what its arguments say, one after the other.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	for _, arg := range os.Args[1:] {
		verb, rest, _ := strings.Cut(arg, "=")
		switch verb {
		case "print":
			fmt.Println(rest)
		case "env":
			fmt.Println(rest + "=" + os.Getenv(rest))
		case "cat":
			data, err := os.ReadFile(rest)
			if err != nil {
				fmt.Println(err)
				continue
			}
			os.Stdout.Write(data)
		case "write":
			path, text, _ := strings.Cut(rest, ",")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				fmt.Println(err)
			}
		case "eat":
			mega, _ := strconv.Atoi(rest)
			var kept [][]byte
			for range mega {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				kept = append(kept, b)
			}
			fmt.Println(len(kept))
		case "exit":
			code, _ := strconv.Atoi(rest)
			os.Exit(code)
		case "wait":
			stop := make(chan os.Signal, 1)
			signal.Notify(stop, syscall.SIGTERM)
			fmt.Println("waiting")
			<-stop
			fmt.Println("bye")
		}
	}
}
