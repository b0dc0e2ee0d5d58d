package logs

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

const block = 4096

// tailOffset is where the last n lines of a file begin. A last line without an end counts.
func tailOffset(f io.ReaderAt, size int64, n int64) (int64, error) {
	if n <= 0 {
		return size, nil
	}
	buf := make([]byte, block)
	end, found := size, int64(0)
	for end > 0 {
		begin := max(0, end-block)
		part := buf[:end-begin]
		if _, err := f.ReadAt(part, begin); err != nil && err != io.EOF {
			return 0, fmt.Errorf("read log: %w", err)
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' || begin+int64(i) == size-1 {
				continue
			}
			if found++; found == n {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return 0, nil
}

// Tail returns the text at the end of a log: at most so many lines and bytes. Entries that can't be read are left out.
func Tail(path string, lines, limit int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	offset, err := tailOffset(f, info.Size(), int64(lines))
	if err != nil {
		return "", err
	}
	// Each entry has its head beside its text; what is before cannot be in the last bytes of text.
	const maxHead = 64
	offset = max(offset, info.Size()-int64(limit+lines*maxHead))
	data := make([]byte, info.Size()-offset)
	if _, err := f.ReadAt(data, offset); err != nil && err != io.EOF {
		return "", err
	}
	var text bytes.Buffer
	for line := range bytes.Lines(data) {
		e, err := Parse(line)
		if err != nil {
			continue
		}
		text.Write(e.Text)
		if !e.Partial {
			text.WriteByte('\n')
		}
	}
	out := text.Bytes()
	return string(out[max(0, len(out)-limit):]), nil
}
