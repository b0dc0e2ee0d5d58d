package embedded

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/google/go-containerregistry/pkg/authn"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListImages lists the images of the machine's store.
func (r *Runtime) ListImages(_ context.Context, request *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	response := &cri.ListImagesResponse{}
	if wanted := request.GetFilter().GetImage().GetImage(); wanted != "" {
		found, err := r.config.Images.Get(wanted)
		if errors.Is(err, image.ErrNotFound) {
			return response, nil
		}
		if err != nil {
			return nil, err
		}
		response.Images = append(response.Images, criImage(&found))
		return response, nil
	}
	images, err := r.config.Images.List()
	if err != nil {
		return nil, err
	}
	for i := range images {
		response.Images = append(response.Images, criImage(&images[i]))
	}
	return response, nil
}

func criImage(found *image.Image) *cri.Image {
	result := &cri.Image{
		Id: found.ID, RepoTags: found.Tags, RepoDigests: found.Digests, Size: uint64(max(found.Size, 1)), // 0 would mean unknown
		Spec: &cri.ImageSpec{Image: found.ID},
	}
	user, _, _ := strings.Cut(found.Config.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		result.Uid = &cri.Int64Value{Value: uid}
	} else {
		result.Username = user
	}
	return result
}

// ImageStatus tells about one image; without an image in the answer there is none.
func (r *Runtime) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	found, err := r.config.Images.Get(request.GetImage().GetImage())
	if errors.Is(err, image.ErrNotFound) {
		return &cri.ImageStatusResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &cri.ImageStatusResponse{Image: criImage(&found)}, nil
}

// PullImage fetches an image from its registry.
func (r *Runtime) PullImage(ctx context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	ref := request.GetImage().GetImage()
	if ref == "" {
		return nil, status.Error(codes.InvalidArgument, "pull image: image.image is not set")
	}
	pulled, err := r.config.Images.Pull(ctx, ref, image.PullOptions{Auth: credentials(request.GetAuth())})
	if err != nil {
		return nil, err
	}
	return &cri.PullImageResponse{ImageRef: pulled.ID}, nil
}

func credentials(auth *cri.AuthConfig) authn.Authenticator {
	if auth == nil {
		return nil
	}
	return authn.FromConfig(authn.AuthConfig{
		Username: auth.Username, Password: auth.Password, Auth: auth.Auth, IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken,
	})
}

// RemoveImage removes an image or, of an image with several names, a name. It is idempotent. The store belongs to all nodes of the machine: an image
// that a container of any of them uses is refused with FailedPrecondition.
func (r *Runtime) RemoveImage(_ context.Context, request *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	err := r.config.Images.Remove(request.GetImage().GetImage())
	if errors.Is(err, image.ErrInUse) {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if err != nil && !errors.Is(err, image.ErrNotFound) {
		return nil, err
	}
	return &cri.RemoveImageResponse{}, nil
}

// ImageFsInfo tells how much the images take, and how much the containers wrote.
func (r *Runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	bytes, _, err := r.config.Images.Usage()
	if err != nil {
		return nil, err
	}
	now := r.config.Clock.Now().UnixNano()
	written, inodes := treeUsage(r.containersDir())
	return &cri.ImageFsInfoResponse{
		ImageFilesystems: []*cri.FilesystemUsage{{
			Timestamp: now, FsId: &cri.FilesystemIdentifier{Mountpoint: r.config.Images.Root()}, UsedBytes: &cri.UInt64Value{Value: uint64(bytes)},
		}},
		ContainerFilesystems: []*cri.FilesystemUsage{{
			Timestamp: now, FsId: &cri.FilesystemIdentifier{Mountpoint: r.containersDir()},
			UsedBytes: &cri.UInt64Value{Value: written}, InodesUsed: &cri.UInt64Value{Value: inodes},
		}},
	}, nil
}
