package bind

import (
	"context"
	"fmt"

	"github.com/bayplan/bayplan/internal/scheduler/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BindVolumes writes a plan: volumes with their claims, claims with the node for which to provision. It returns the plan
// with the objects that the API server returned. What was written before an error stays: the next attempt finds it.
func (c *Client) BindVolumes(ctx context.Context, plan *storage.Plan) (*storage.Plan, error) {
	written := &storage.Plan{Node: plan.Node}
	for _, b := range plan.Bind {
		volume, err := c.Client.CoreV1().PersistentVolumes().Update(ctx, b.Volume, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("binding volumes: persistentvolume %s to claim %s/%s: %w", b.Volume.Name, b.Claim.Namespace, b.Claim.Name, err)
		}
		written.Bind = append(written.Bind, storage.Binding{Claim: b.Claim, Volume: volume})
	}
	for _, p := range plan.Provision {
		claim, err := c.Client.CoreV1().PersistentVolumeClaims(p.Claim.Namespace).Update(ctx, p.Claim, metav1.UpdateOptions{})
		if err != nil {
			return nil, fmt.Errorf("binding volumes: claim %s/%s on node %s: %w", p.Claim.Namespace, p.Claim.Name, plan.Node, err)
		}
		written.Provision = append(written.Provision, storage.Provision{Claim: claim, Total: p.Total})
	}
	return written, nil
}
