package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &ContainerState{
			ID:        rapid.String().Draw(t, "id"),
			Phase:     rapid.SampledFrom([]Phase{Running, Exited}).Draw(t, "phase"),
			PID:       rapid.IntRange(0, 1<<22).Draw(t, "pid"),
			StartedAt: time.Unix(0, rapid.Int64Range(0, 1<<60).Draw(t, "started")).UTC(),
			ExitCode:  rapid.IntRange(0, 255).Draw(t, "code"),
			Message:   strings.Repeat("m", rapid.IntRange(0, 200_000).Draw(t, "length")),
		}
		want.ID = strings.ToValidUTF8(want.ID, "")
		var wire bytes.Buffer
		if err := Write(&wire, &Reply{State: want}); err != nil {
			t.Fatal(err)
		}
		var got Reply
		if err := Read(&wire, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.State); diff != "" {
			t.Fatalf("state changed on the wire (-want +got):\n%s", diff)
		}
		if wire.Len() != 0 {
			t.Fatalf("%d bytes left over", wire.Len())
		}
	})
}

func TestReadRefuses(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, MaxFrame+1)
	short := append(binary.BigEndian.AppendUint32(nil, 10), "{}"...)
	garbage := append(binary.BigEndian.AppendUint32(nil, 2), "{]"...)
	for name, test := range map[string]struct {
		wire []byte
		want string
	}{
		"nothing":         {nil, "EOF"},
		"half a header":   {[]byte{0, 0}, "unexpected EOF"},
		"too long":        {huge, "frame of 8388609 bytes is larger than the 8388608 allowed"},
		"cut off":         {short, "frame of 10 bytes ended after 0: unexpected EOF"},
		"not JSON":        {garbage, "frame of 2 bytes: invalid character ']' looking for beginning of object key string"},
		"lying and empty": {binary.BigEndian.AppendUint32(nil, MaxFrame), "frame of 8388608 bytes ended after 0: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Read(bytes.NewReader(test.wire), &Reply{})
			if err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestEncodeRefusesTooLong(t *testing.T) {
	_, err := Encode(&StartRequest{Spec: json.RawMessage(`"` + strings.Repeat("x", MaxFrame) + `"`)})
	if err == nil || !strings.Contains(err.Error(), "more than the 8388608 that a frame may have") {
		t.Fatalf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	frame, err := Encode(&Request{Start: &StartRequest{ID: "a", Spec: json.RawMessage(`{}`)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{'})
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := bytes.NewReader(wire)
		for {
			var request Request
			if err := Read(r, &request); err != nil {
				if errors.Is(err, io.EOF) && r.Len() > 0 && len(wire) > headerSize {
					t.Fatalf("end of stream with %d bytes left", r.Len())
				}
				return
			}
		}
	})
}
