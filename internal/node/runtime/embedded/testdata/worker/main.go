// Command worker is what the tests' containers run: a static binary that does one thing after another as its arguments say.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	for args := os.Args[1:]; len(args) > 0; {
		args = step(args)
	}
}

// step does the first thing of args and gives the rest.
func step(args []string) []string {
	verb, rest := args[0], args[1:]
	arg := func() string { a := rest[0]; rest = rest[1:]; return a }
	switch verb {
	case "say":
		fmt.Println(arg())
	case "complain":
		fmt.Fprintln(os.Stderr, arg())
	case "exit":
		code, _ := strconv.Atoi(arg())
		os.Exit(code)
	case "wait": // for ever
		for {
			time.Sleep(time.Hour) // without a goroutine, select{} is a deadlock
		}
	case "sleep":
		d, err := time.ParseDuration(arg())
		check(err)
		time.Sleep(d)
	case "term": // on SIGTERM, say so and exit with 7
		onTerm(func() { fmt.Println("terminating"); os.Exit(7) })
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "spin":
		for {
		}
	case "allocate": // so many MiB
		n, _ := strconv.Atoi(arg())
		b := make([]byte, n<<20)
		for i := range b {
			b[i] = 1
		}
	case "child": // run the rest as a child, and go on whatever becomes of it
		c := exec.Command(os.Args[0], rest...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		fmt.Println("child:", c.Run())
		return nil
	case "orphan": // leave a child behind
		c := exec.Command(os.Args[0], "stubborn", "wait")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		check(c.Start())
		fmt.Println("orphan", c.Process.Pid)
	case "id":
		groups, _ := os.Getgroups()
		fmt.Println("uid", os.Getuid(), "gid", os.Getgid(), "groups", groups)
	case "env":
		fmt.Println(os.Getenv(arg()))
	case "cat":
		b, err := os.ReadFile(arg())
		check(err)
		fmt.Println(strings.TrimSpace(string(b)))
	case "ls":
		entries, err := os.ReadDir(arg())
		check(err)
		for _, e := range entries {
			fmt.Println(e.Name())
		}
	case "write":
		path := arg()
		if err := os.WriteFile(path, []byte(arg()), 0o644); err != nil {
			fmt.Println(err)
		}
	case "hostname":
		h, _ := os.Hostname()
		fmt.Println(h)
	case "pid":
		fmt.Println("pid", os.Getpid())
	case "proc": // a field of /proc/self/status
		field := arg()
		b, _ := os.ReadFile("/proc/self/status")
		for line := range strings.SplitSeq(string(b), "\n") {
			if strings.HasPrefix(line, field+":") {
				fmt.Println(strings.Join(strings.Fields(line), " "))
			}
		}
	case "keyring": // a system call that the default filter refuses
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		fmt.Println("keyring:", err)
	case "processes": // how many there are, zombies apart
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		n := 0
		for _, path := range stats {
			if b, err := os.ReadFile(path); err == nil && !strings.Contains(string(b), ") Z ") {
				n++
			}
		}
		fmt.Println("processes", n)
	case "echo": // lines of standard input, until its end
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			fmt.Println("got", s.Text())
		}
		fmt.Println("end of input")
	case "serve": // a TCP port, which says hello and closes
		l, err := net.Listen("tcp", ":"+arg())
		check(err)
		go func() {
			for {
				c, err := l.Accept()
				check(err)
				line, _ := bufio.NewReader(c).ReadString('\n')
				fmt.Fprintf(c, "hello, %s", line)
				_ = c.Close()
			}
		}()
	case "count": // a line each interval
		d, err := time.ParseDuration(arg())
		check(err)
		for i := 0; ; i++ {
			fmt.Println("line", i)
			time.Sleep(d)
		}
	case "mount": // a tmpfs
		check(unix.Mount("tmpfs", arg(), "tmpfs", 0, ""))
	case "await": // until a file is there
		for path := arg(); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(path); err == nil {
				break
			}
		}
	case "tty":
		_, err := os.Stat("/dev/console")
		fmt.Println("console:", err == nil)
	case "size": // of the terminal, when it changes
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGWINCH)
		fmt.Println("watching the size")
		<-c
		fmt.Println("resized")
	default:
		fmt.Fprintln(os.Stderr, "worker: what is", verb)
		os.Exit(2)
	}
	return rest
}

func onTerm(f func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	go func() { <-c; f() }()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(3)
	}
}
