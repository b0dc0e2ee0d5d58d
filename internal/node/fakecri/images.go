package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func (r *Runtime) findImage(name string) *cri.Image {
	if image := r.images[name]; image != nil {
		return image
	}
	for _, image := range r.images {
		if image.Id == name {
			return image
		}
	}
	return nil
}

// ImageStatus finds an image by name or ID.
func (r *Runtime) ImageStatus(_ context.Context, req *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &cri.ImageStatusResponse{Image: r.findImage(req.Image.Image)}, nil
}

// ListImages lists all.
func (r *Runtime) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &cri.ListImagesResponse{}
	for _, image := range r.images {
		out.Images = append(out.Images, image)
	}
	return out, nil
}

// PullImage makes the image present, unless it was told to fail for it.
func (r *Runtime) PullImage(ctx context.Context, req *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	name := req.Image.Image
	if err := r.begin(ctx, "PullImage", name); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	image := r.AddImage(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := req.Auth; a != nil {
		r.note("pull %s as %s", name, a.Username)
	} else {
		r.note("pull %s", name)
	}
	return &cri.PullImageResponse{ImageRef: image.Id}, nil
}

// RemoveImage forgets it.
func (r *Runtime) RemoveImage(_ context.Context, req *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, image := range r.images {
		if name == req.Image.Image || image.Id == req.Image.Image {
			r.note("remove-image %s", name)
			delete(r.images, name)
		}
	}
	return &cri.RemoveImageResponse{}, nil
}

// ImageFsInfo says that images take little.
func (r *Runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{ImageFilesystems: []*cri.FilesystemUsage{{UsedBytes: &cri.UInt64Value{Value: 1000}}}}, nil
}
