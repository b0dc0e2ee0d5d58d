package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/bayplan/bayplan/internal/datadir"
)

// unlockInterval is how often Down looks whether a process that stops has let go of the data directory.
const unlockInterval = 10 * time.Millisecond

// Down stops the cluster that runs on a data directory, in order, and ends what a killed process left of it: pods, mounts, network namespaces and cgroups.
// stopped is the process that ran, if any. With remove the directory goes too.
func Down(ctx context.Context, dataDir string, remove bool) (stopped *datadir.Process, err error) {
	dataDir, err = filepath.Abs(dataDir)
	if err != nil {
		return nil, err
	}
	process, client, err := datadir.Running(dataDir)
	switch {
	case err == nil:
		if err := askToStop(ctx, client, dataDir, process); err != nil {
			return nil, err
		}
		stopped = &process
	case !errors.Is(err, datadir.ErrNotRunning):
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dataDir, "version")); err != nil {
		return stopped, nil
	}
	return stopped, cleanUp(ctx, dataDir, remove)
}

func askToStop(ctx context.Context, client *http.Client, dataDir string, process datadir.Process) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://bayplan/stop", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("process %d, which uses %s, does not answer: %w; end it by `kill`, and run this again to clean up", process.PID, dataDir, err)
	}
	_ = response.Body.Close()
	ticker := time.NewTicker(unlockInterval)
	defer ticker.Stop()
	for {
		if used, err := datadir.InUse(dataDir); err != nil || !used {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d still stops: %w; wait longer by --timeout", process.PID, ctx.Err())
		}
	}
}

func cleanUp(ctx context.Context, dataDir string, remove bool) error {
	data, err := datadir.Existing(dataDir)
	if err != nil {
		return err
	}
	if err := endFormerCluster(ctx, data); err != nil || !remove {
		return errors.Join(err, data.Close())
	}
	return data.Remove()
}

// Inspect asks the cluster that runs on a data directory for one of the paths of its socket: status, goroutines, heap or snapshot.
func Inspect(ctx context.Context, dataDir, path string) (*http.Response, error) {
	_, client, err := datadir.Running(dataDir)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://bayplan/"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, fmt.Errorf("the cluster on %s refuses to give its %s: %s", dataDir, path, firstLine(response.Body))
	}
	return response, nil
}
