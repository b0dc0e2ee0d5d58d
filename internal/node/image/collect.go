package image

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// minAge is for how long an image is left alone after it was first seen unused: it may just have been pulled for a pod that is on its way.
const minAge = 2 * time.Minute

// Collector removes images that no pod uses when the disk gets full. All fields have to be set.
type Collector struct {
	Images cri.ImageServiceServer
	Clock  clock.PassiveClock
	// High and Low are percentages of the disk: above High images are removed until usage is at Low.
	High, Low int
	// Usage tells capacity and free space of the file system at a path, in bytes.
	Usage func(path string) (capacity, free int64, err error)

	unused map[string]time.Time // since when, by ID
}

// Collect removes as many images as needed, those unused for longest first, and returns their names. inUse are names or IDs.
func (c *Collector) Collect(ctx context.Context, inUse map[string]bool) ([]string, error) {
	list, err := c.Images.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	candidates := c.note(list.Images, inUse)
	need, err := c.need(ctx)
	if err != nil || need <= 0 {
		return nil, err
	}
	return c.remove(ctx, candidates, need)
}

// Reclaim removes all images that have been unused for a while, and returns their names: the disk is needed.
func (c *Collector) Reclaim(ctx context.Context, inUse map[string]bool) ([]string, error) {
	list, err := c.Images.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return c.remove(ctx, c.note(list.Images, inUse), math.MaxInt64)
}

// remove removes images until as many bytes are freed as needed.
func (c *Collector) remove(ctx context.Context, candidates []*cri.Image, need int64) ([]string, error) {
	var removed []string
	for _, image := range candidates {
		if need <= 0 {
			break
		}
		if _, err := c.Images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: image.Id}}); status.Code(err) == codes.FailedPrecondition {
			continue // another node of the machine uses it
		} else if err != nil {
			return removed, fmt.Errorf("remove image %s: %w", image.Id, err)
		}
		delete(c.unused, image.Id)
		need -= int64(image.Size)
		removed = append(removed, name(image))
	}
	return removed, nil
}

func name(i *cri.Image) string {
	if len(i.RepoTags) > 0 {
		return i.RepoTags[0]
	}
	return i.Id
}

// note keeps since when images are unused, and returns those that may go, the longest unused first.
func (c *Collector) note(images []*cri.Image, inUse map[string]bool) []*cri.Image {
	now := c.Clock.Now()
	if c.unused == nil {
		c.unused = map[string]time.Time{}
	}
	present := map[string]bool{}
	var out []*cri.Image
	for _, i := range images {
		present[i.Id] = true
		used := i.Pinned || inUse[i.Id] || slices.ContainsFunc(slices.Concat(i.RepoTags, i.RepoDigests), func(n string) bool { return inUse[n] })
		if used {
			delete(c.unused, i.Id)
			continue
		}
		if since, ok := c.unused[i.Id]; !ok {
			c.unused[i.Id] = now
		} else if now.Sub(since) >= minAge {
			out = append(out, i)
		}
	}
	for id := range c.unused {
		if !present[id] {
			delete(c.unused, id)
		}
	}
	slices.SortFunc(out, func(a, b *cri.Image) int {
		return cmp.Or(c.unused[a.Id].Compare(c.unused[b.Id]), cmp.Compare(a.Id, b.Id))
	})
	return out
}

// need is how many bytes have to be freed.
func (c *Collector) need(ctx context.Context) (int64, error) {
	info, err := c.Images.ImageFsInfo(ctx, &cri.ImageFsInfoRequest{})
	if err != nil {
		return 0, fmt.Errorf("disk of the images: %w", err)
	}
	if len(info.ImageFilesystems) == 0 {
		return 0, nil
	}
	capacity, free, err := c.Usage(info.ImageFilesystems[0].GetFsId().GetMountpoint())
	if err != nil || capacity == 0 {
		return 0, err
	}
	if used := capacity - free; used*100 < capacity*int64(c.High) {
		return 0, nil
	}
	return capacity*int64(100-c.Low)/100 - free, nil
}
