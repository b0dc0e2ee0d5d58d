package protocol

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// MaxFrame bounds the JSON of one frame, in bytes. A container's spec with a thousand mounts and variables stays under 1 MiB.
const MaxFrame = 8 << 20

// headerSize is the length prefix of a frame, in bytes.
const headerSize = 4

// Encode gives the bytes of a frame that holds v.
func Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if len(body) > MaxFrame {
		return nil, fmt.Errorf("encode %T: %d bytes are more than the %d that a frame may have", v, len(body), MaxFrame)
	}
	frame := make([]byte, headerSize, headerSize+len(body))
	binary.BigEndian.PutUint32(frame, uint32(len(body)))
	return append(frame, body...), nil
}

// Write sends v as one frame.
func Write(w io.Writer, v any) error {
	frame, err := Encode(v)
	if err != nil {
		return err
	}
	_, err = w.Write(frame)
	return err
}

// Read receives one frame into v. At the end of the stream, between frames, the error is io.EOF.
func Read(r io.Reader, v any) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > MaxFrame {
		return fmt.Errorf("frame of %d bytes is larger than the %d allowed", size, MaxFrame)
	}
	body, err := readBody(r, int(size))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("frame of %d bytes: %w", size, err)
	}
	return nil
}

// readBody grows its buffer with what really arrives, so that a lying length costs the peer bytes and not us memory.
func readBody(r io.Reader, size int) ([]byte, error) {
	const step = 64 << 10
	body := make([]byte, 0, min(size, step))
	for len(body) < size {
		n := min(size-len(body), step)
		start := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[start:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("frame of %d bytes ended after %d: %w", size, start, err)
		}
	}
	return body, nil
}
