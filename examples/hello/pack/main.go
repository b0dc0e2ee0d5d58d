// Command pack makes the image of examples/hello from its binary: pack BINARY TAG ARCHIVE.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: pack BINARY TAG ARCHIVE")
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func pack(binary, tag, archive string) error {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	err = image.Build(file, image.Recipe{
		Tag:   tag,
		Files: map[string]string{"/hello": binary},
		Config: v1.Config{
			Entrypoint: []string{"/hello"}, User: "65534:65534", ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		},
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("packing %s: %w", archive, err)
	}
	return nil
}
