package storage

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Empty reports whether nothing has to be done.
func (p *Plan) Empty() bool { return len(p.Bind) == 0 && len(p.Provision) == 0 }

// Assume lets a plan count, and replaces its objects by those that have to be written: volumes that name their claim, and
// claims that name the node.
func (s *State) Assume(p *Plan) {
	for i := range p.Bind {
		b := &p.Bind[i]
		b.Volume = boundTo(b.Volume, b.Claim)
		s.assumedVolumes[b.Volume.Name] = compile(b.Volume)
	}
	for i := range p.Provision {
		claim := p.Provision[i].Claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, annSelectedNode, p.Node)
		p.Provision[i].Claim = claim
		s.assumedClaims[key(claim.Namespace, claim.Name)] = claim
	}
	s.revision++
}

// boundTo returns the volume with a reference to the claim.
func boundTo(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	out := volume.DeepCopy()
	if !made(volume, claim) {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, annBoundByController, "yes")
	}
	out.Spec.ClaimRef = &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		ResourceVersion: claim.ResourceVersion,
	}
	return out
}

// Forget takes back what was assumed of a plan.
func (s *State) Forget(p *Plan) {
	for i := range p.Bind {
		if name := p.Bind[i].Volume.Name; s.assumedVolumes[name] != nil && s.assumedVolumes[name].PersistentVolume == p.Bind[i].Volume {
			delete(s.assumedVolumes, name)
		}
	}
	for i := range p.Provision {
		claim := p.Provision[i].Claim
		if at := key(claim.Namespace, claim.Name); s.assumedClaims[at] == claim {
			delete(s.assumedClaims, at)
		}
	}
	s.revision++
}

// Settled reports whether everything that was written for a plan has come true. The plan's objects must be as the API
// server returned them. An error tells that it cannot come true any more.
func (s *State) Settled(p *Plan, node map[string]string) (bool, error) {
	for i := range p.Bind {
		done, err := s.boundAsPlanned(&p.Bind[i], node)
		if !done || err != nil {
			return false, err
		}
	}
	for i := range p.Provision {
		done, err := s.provisioned(p.Provision[i].Claim, p.Node, node)
		if !done || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *State) boundAsPlanned(b *Binding, node map[string]string) (bool, error) {
	volume, claim := s.volumes[b.Volume.Name], s.claims[key(b.Claim.Namespace, b.Claim.Name)]
	switch {
	case volume == nil:
		return false, fmt.Errorf("persistentvolume %q is gone", b.Volume.Name)
	case claim == nil:
		return false, fmt.Errorf("persistentvolumeclaim %q is gone", b.Claim.Name)
	case older(volume.ResourceVersion, b.Volume.ResourceVersion):
		return false, nil
	case !volume.usable(node):
		return false, fmt.Errorf("node affinity of persistentvolume %q does not match the node any more", volume.Name)
	case volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "":
		return false, fmt.Errorf("persistentvolume %q has lost its claimRef", volume.Name)
	}
	return bound(claim), nil
}

func (s *State) provisioned(planned *v1.PersistentVolumeClaim, nodeName string, node map[string]string) (bool, error) {
	claim := s.claims[key(planned.Namespace, planned.Name)]
	switch {
	case claim == nil:
		return false, fmt.Errorf("persistentvolumeclaim %q is gone", planned.Name)
	case older(claim.ResourceVersion, planned.ResourceVersion):
		return false, nil
	case claim.Annotations[annSelectedNode] != nodeName:
		return false, fmt.Errorf("provisioning for persistentvolumeclaim %q failed: its node was taken back", claim.Name)
	}
	if claim.Spec.VolumeName == "" {
		return false, nil
	}
	volume := s.volumes[claim.Spec.VolumeName]
	if volume == nil {
		return false, nil
	}
	if !volume.usable(node) {
		return false, fmt.Errorf("node affinity of persistentvolume %q does not match the node", volume.Name)
	}
	return bound(claim), nil
}

// older reports whether a version is from before another one. Versions that are no numbers are not compared.
func older(version, than string) bool {
	c, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && c < 0
}
