// Package image makes the images of containers present: by the container's pull policy, with the pod's pull secrets, several pulls at once
// and each image only once at a time, however many pods wait for it. It also frees disk space by removing images that nobody uses.
package image

import (
	"context"
	"fmt"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// Failure says why an image isn't there, with the reason that the container's status shows.
type Failure struct {
	Reason, Message string
}

func (f *Failure) Error() string { return f.Message }

// Reasons of failures.
const (
	ReasonPull    = "ErrImagePull"
	ReasonNever   = "ErrImageNeverPull"
	ReasonInvalid = "InvalidImageName"
	ReasonInspect = "ImageInspectError"
)

// Record takes an event about a container.
type Record func(eventType, reason, message string)

// Puller makes images present. Make it with NewPuller.
type Puller struct {
	images cri.ImageServiceServer
	clock  clock.PassiveClock
	slots  chan struct{}
	group  singleflight.Group
	pulled func()
}

// NewPuller makes a puller that runs at most parallel pulls at once, and calls pulled after each that worked.
func NewPuller(images cri.ImageServiceServer, c clock.PassiveClock, parallel int, pulled func()) *Puller {
	return &Puller{images: images, clock: c, slots: make(chan struct{}, parallel), pulled: pulled}
}

// Ensure returns the container's image, which it pulls if the policy wants it.
func (p *Puller) Ensure(ctx context.Context, c *v1.Container, secrets []*v1.Secret, record Record) (*cri.Image, *Failure) {
	if _, err := reference.ParseNormalizedNamed(c.Image); err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: %v", c.Image, c.Image, err)
		record(v1.EventTypeWarning, "InspectFailed", message)
		return nil, &Failure{ReasonInvalid, message}
	}
	present, err := p.lookUp(ctx, c.Image)
	if err != nil {
		message := fmt.Sprintf("Failed to inspect image %q: %s", c.Image, text(err))
		record(v1.EventTypeWarning, "InspectFailed", message)
		return nil, &Failure{ReasonInspect, message}
	}
	switch policy(c) {
	case v1.PullNever:
		if present == nil {
			message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
			record(v1.EventTypeWarning, ReasonNever, message)
			return nil, &Failure{ReasonNever, message}
		}
	case v1.PullAlways:
		present = nil
	}
	if present != nil {
		record(v1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image))
		return present, nil
	}
	return p.pull(ctx, c.Image, secrets, record)
}

// policy is the container's pull policy. Without one, images with the tag latest or none at all are always pulled.
func policy(c *v1.Container) v1.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	named, err := reference.ParseNormalizedNamed(c.Image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

func (p *Puller) lookUp(ctx context.Context, name string) (*cri.Image, error) {
	resp, err := p.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
	if err != nil {
		return nil, err
	}
	return resp.GetImage(), nil
}

func (p *Puller) pull(ctx context.Context, name string, secrets []*v1.Secret, record Record) (*cri.Image, *Failure) {
	record(v1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", name))
	begin := p.clock.Now()
	auths := Credentials(secrets, name)
	// A pull that others wait for too goes on when this pod doesn't need it any more.
	pullCtx := context.WithoutCancel(ctx)
	result := p.group.DoChan(flightKey(name, auths), func() (any, error) { return p.fetch(pullCtx, name, auths) })
	var got singleflight.Result
	select {
	case <-ctx.Done():
		return nil, &Failure{ReasonPull, ctx.Err().Error()}
	case got = <-result:
	}
	if got.Err != nil {
		record(v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", name, text(got.Err)))
		record(v1.EventTypeWarning, "Failed", "Error: "+ReasonPull)
		return nil, &Failure{ReasonPull, text(got.Err)}
	}
	done := got.Val.(*fetched)
	total := p.clock.Since(begin).Truncate(time.Millisecond)
	record(v1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		name, min(total, done.took.Truncate(time.Millisecond)), total, done.image.Size))
	return done.image, nil
}

type fetched struct {
	image *cri.Image
	took  time.Duration
}

// fetch tries one credential after the other, or none when there are none.
func (p *Puller) fetch(ctx context.Context, name string, auths []*cri.AuthConfig) (*fetched, error) {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	begin := p.clock.Now()
	if len(auths) == 0 {
		auths = []*cri.AuthConfig{nil}
	}
	var last error
	for _, auth := range auths {
		resp, err := p.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: name}, Auth: auth})
		if err != nil {
			last = err
			continue
		}
		image, err := p.lookUp(ctx, resp.ImageRef)
		if err != nil {
			return nil, err
		}
		if image == nil {
			image = &cri.Image{Id: resp.ImageRef}
		}
		p.pulled()
		return &fetched{image, p.clock.Since(begin)}, nil
	}
	return nil, last
}

func flightKey(name string, auths []*cri.AuthConfig) string {
	for _, a := range auths {
		name += "\x00" + a.Username + "\x00" + a.Password
	}
	return name
}

// text is an error's message without what gRPC puts around it.
func text(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
