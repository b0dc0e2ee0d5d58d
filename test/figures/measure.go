package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func say(p maker, what, figure string, args ...any) {
	fmt.Printf("%-24s %-58s %s\n", p.name(), what, fmt.Sprintf(figure, args...))
}

// measure starts the control plane on empty directories, then works on the last of them.
func measure(ctx context.Context, o options, m maker) error {
	root, err := os.MkdirTemp("", "figures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	starts := make([]time.Duration, o.rounds)
	var dir string
	var p *plane
	for i := range starts {
		dir = fmt.Sprintf("%s/%d", root, i)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if p, starts[i], err = untilFirstPod(ctx, m, dir, "first"); err != nil {
			return err
		}
		if i == len(starts)-1 {
			break
		}
		if err := p.stop(); err != nil {
			return err
		}
	}
	say(m, "exec to the first Pod, empty data directory", "%d ms", median(starts).Milliseconds())
	return stopAfter(p, func() error { return measureRunning(ctx, o, m, p) }, func() error { return measureRestart(ctx, o, m, dir) })
}

// stopAfter runs work while the plane runs, and then what follows its stop.
func stopAfter(p *plane, work, next func() error) error {
	err := work()
	if stopErr := p.stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	return next()
}

func measureRunning(ctx context.Context, o options, m maker, p *plane) error {
	if err := measureMemory(ctx, o, m, p, "memory, idle (PSS)"); err != nil {
		return err
	}
	client, err := p.client(ctx)
	if err != nil {
		return err
	}
	before, err := p.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := createPods(ctx, client, o.workers, "cpu", o.created); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := p.cpu()
	if err != nil {
		return err
	}
	say(m, fmt.Sprintf("CPU time of the servers for each of %d Pods, over TLS", o.created), "%d us", (after-before).Microseconds()/int64(o.created))
	say(m, "Pods a second meanwhile", "%.0f", float64(o.created)/took.Seconds())
	if err := measureWatchers(ctx, o, m, p); err != nil {
		return err
	}
	return createPods(ctx, client, o.workers, "more", o.pods-o.created)
}

func measureRestart(ctx context.Context, o options, m maker, dir string) error {
	restarts := make([]time.Duration, o.rounds)
	for i := range restarts {
		p, took, err := untilFirstPod(ctx, m, dir, fmt.Sprintf("restart-%d", i))
		if err != nil {
			return err
		}
		restarts[i] = took
		if i == len(restarts)-1 {
			say(m, fmt.Sprintf("exec to the first Pod, %d Pods there", o.pods), "%d ms", median(restarts).Milliseconds())
			return stopAfter(p, func() error { return measureMemory(ctx, o, m, p, fmt.Sprintf("memory with %d Pods (PSS)", o.pods)) }, func() error { return nil })
		}
		if err := p.stop(); err != nil {
			return err
		}
	}
	return nil
}

func measureMemory(ctx context.Context, o options, m maker, p *plane, what string) error {
	if err := pause(ctx, o.idle); err != nil {
		return err
	}
	var sizes []int64
	for range 12 {
		size, err := p.pss()
		if err != nil {
			return err
		}
		sizes = append(sizes, size)
		if err := pause(ctx, min(5*time.Second, o.idle/12)); err != nil {
			return err
		}
	}
	say(m, what, "%d MiB", median(sizes)>>20)
	return nil
}

// untilFirstPod starts the plane and tries until a Pod is created.
func untilFirstPod(ctx context.Context, m maker, dir, name string) (*plane, time.Duration, error) {
	p, err := m.start(ctx, dir)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := p.client(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("%w (see the logs in %s)", err, dir)
	}
	for {
		_, err := client.CoreV1().Pods("default").Create(ctx, pod(name), metav1.CreateOptions{})
		if err == nil {
			return p, time.Since(p.began), nil
		}
		if pause(ctx, 2*time.Millisecond) != nil {
			return nil, 0, err
		}
		if client, err = p.client(ctx); err != nil { // kube-apiserver may have just written another certificate
			return nil, 0, err
		}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "figures", "tier": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "web", Image: "registry.example/web:1.2.3", Args: []string{"--listen=:8080"}, Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
				Env:       []corev1.EnvVar{{Name: "LEVEL", Value: "info"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}},
			}},
		},
	}
}

func createPods(ctx context.Context, client kubernetes.Interface, workers int, prefix string, count int) error {
	numbers, failed := make(chan int), make(chan error, workers)
	for range workers {
		go func() {
			for n := range numbers {
				if _, err := client.CoreV1().Pods("default").Create(ctx, pod(fmt.Sprintf("%s-%d", prefix, n)), metav1.CreateOptions{}); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for n := range max(0, count) {
		select {
		case numbers <- n:
		case err := <-failed:
			return err
		}
	}
	close(numbers)
	for range workers {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

func median[T int64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
