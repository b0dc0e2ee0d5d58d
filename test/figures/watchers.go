package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

const changesPerSecond = 50

// measureWatchers watches one ConfigMap many times over while it changes 50 times a second, and counts who missed a change.
func measureWatchers(ctx context.Context, o options, m maker, p *plane) error {
	before, err := p.pss()
	if err != nil {
		return err
	}
	client, err := p.client(ctx)
	if err != nil {
		return err
	}
	object, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.changes/changesPerSecond+60)*time.Second)
	defer cancel()
	var complete atomic.Int64
	var watching sync.WaitGroup
	for i := range o.watchers {
		w, err := client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=watched", ResourceVersion: object.ResourceVersion})
		if err != nil {
			return fmt.Errorf("watcher %d: %w", i, err)
		}
		watching.Go(func() {
			defer w.Stop()
			if sees(w, o.changes) {
				complete.Add(1)
			}
		})
	}
	if err := change(ctx, client, object, o.changes); err != nil {
		return err
	}
	watching.Wait()
	after, err := p.pss()
	say(m, fmt.Sprintf("of %d watchers see each of %d changes, 50 a second", o.watchers, o.changes), "%d", complete.Load())
	say(m, "memory that they took (PSS)", "%d MiB", (after-before)>>20)
	return err
}

// sees reports whether the watcher gets so many changes before it ends.
func sees(w watch.Interface, changes int) bool {
	seen := 0
	for event := range w.ResultChan() {
		if event.Type != watch.Modified {
			return false
		}
		if seen++; seen == changes {
			return true
		}
	}
	return false
}

func change(ctx context.Context, client kubernetes.Interface, object *corev1.ConfigMap, changes int) error {
	ticker := time.NewTicker(time.Second / changesPerSecond)
	defer ticker.Stop()
	for i := range changes {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		object.Data = map[string]string{"n": fmt.Sprint(i)}
		var err error
		if object, err = client.CoreV1().ConfigMaps("default").Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
