package volume

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// trust is the content of a projection of trust anchors: those of one ClusterTrustBundle, or of all of a signer that the selector matches (none selects
// nothing). Where there is no such bundle, an optional projection is an empty file.
func (m *Manager) trust(ctx context.Context, p *v1.ClusterTrustBundleProjection) ([]byte, error) {
	optional := isTrue(p.Optional)
	switch {
	case p.Name != nil:
		bundle, err := m.client.CertificatesV1().ClusterTrustBundles().Get(ctx, *p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && optional {
			return nil, nil
		}
		if err != nil {
			return nil, notFound("clustertrustbundle", *p.Name, err)
		}
		return anchors([]certificates.ClusterTrustBundle{*bundle})
	case p.SignerName != nil:
		bundles, err := m.bundlesOf(ctx, *p.SignerName, p.LabelSelector)
		if err != nil {
			return nil, err
		}
		if len(bundles) == 0 && !optional {
			return nil, fmt.Errorf("combination of signerName %q and labelSelector matched zero ClusterTrustBundles", *p.SignerName)
		}
		return anchors(bundles)
	}
	return nil, errors.New("a clusterTrustBundle projection needs a name or a signerName")
}

// bundlesOf are the bundles of a signer that the selector matches.
func (m *Manager) bundlesOf(ctx context.Context, signer string, wanted *metav1.LabelSelector) ([]certificates.ClusterTrustBundle, error) {
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return nil, err
	}
	if _, some := selector.Requirements(); !some {
		return nil, nil
	}
	list, err := m.client.CertificatesV1().ClusterTrustBundles().List(ctx, metav1.ListOptions{
		LabelSelector: selector.String(), FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String(), ResourceVersion: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("clustertrustbundles of %s: %w", signer, err)
	}
	return slices.DeleteFunc(list.Items, func(b certificates.ClusterTrustBundle) bool {
		return b.Spec.SignerName != signer || !selector.Matches(labels.Set(b.Labels))
	}), nil
}

// anchors are the certificates of the bundles, each once, without what stands between them, and in an order that depends on nothing else.
func anchors(bundles []certificates.ClusterTrustBundle) ([]byte, error) {
	var blocks [][]byte
	for i := range bundles {
		rest := []byte(bundles[i].Spec.TrustBundle)
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type != "CERTIFICATE" {
				return nil, fmt.Errorf("clustertrustbundle %q has a block %q, which is no certificate", bundles[i].Name, block.Type)
			}
			blocks = append(blocks, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
	}
	slices.SortFunc(blocks, bytes.Compare)
	return bytes.Join(slices.CompactFunc(blocks, bytes.Equal), nil), nil
}
