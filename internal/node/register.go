package node

import (
	"context"
	"maps"
	"net"
	goruntime "runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// desired is the Node as the agent wants it, with its status.
func (n *Node) desired(ctx context.Context) *v1.Node {
	labels := map[string]string{v1.LabelHostname: n.cfg.Name, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH}
	maps.Copy(labels, n.cfg.Labels)
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: labels},
		Spec:       v1.NodeSpec{Taints: n.cfg.Taints},
	}
	if n.cfg.PodCIDR.IsValid() {
		node.Spec.PodCIDR = n.cfg.PodCIDR.String()
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
	}
	node.Status = n.status(ctx, nil)
	return node
}

// register creates the Node, or takes over the one that is there: labels are brought up to date, all else that others have set stays. It
// tries until it works.
func (n *Node) register(ctx context.Context) *v1.Node {
	log := klog.FromContext(ctx)
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 2*time.Second) {
		node, err := n.tryRegister(ctx)
		if err == nil {
			log.Info("Registered the node")
			return node
		}
		if ctx.Err() != nil {
			return nil
		}
		n.failures.Error(ctx, err, "Cannot register the node; trying again")
		select {
		case <-ctx.Done():
			return nil
		case <-n.cfg.Clock.After(delay):
		}
	}
}

func (n *Node) tryRegister(ctx context.Context) (*v1.Node, error) {
	nodes := n.cfg.Client.CoreV1().Nodes()
	want := n.desired(ctx)
	made, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if err == nil || !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	have, err := nodes.Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	changed := have.DeepCopy()
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, want.Labels)
	if changed.Spec.PodCIDR == "" {
		changed.Spec.PodCIDR, changed.Spec.PodCIDRs = want.Spec.PodCIDR, want.Spec.PodCIDRs
	}
	if maps.Equal(changed.Labels, have.Labels) && changed.Spec.PodCIDR == have.Spec.PodCIDR {
		return have, nil
	}
	return nodes.Update(ctx, changed, metav1.UpdateOptions{})
}

// port is the node API's, 0 when there is none.
func (n *Node) port() int32 {
	if n.cfg.Listener == nil {
		return 0
	}
	if a, ok := n.cfg.Listener.Addr().(*net.TCPAddr); ok {
		return int32(a.Port)
	}
	return 0
}
