package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// Expand fills in the patterns of a text for the node with that number, from 1: {index}, {index:4}, {index/40}, {a,b,c}.
func Expand(text string, index int) (string, error) {
	var out strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, "{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		pattern, more, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("%q: { without }", text)
		}
		value, err := fill(pattern, index)
		if err != nil {
			return "", fmt.Errorf("%q: %w", text, err)
		}
		out.WriteString(value)
		rest = more
	}
}

func fill(pattern string, index int) (string, error) {
	if choices := strings.Split(pattern, ","); len(choices) > 1 {
		return choices[(index-1)%len(choices)], nil
	}
	if pattern == "index" {
		return strconv.Itoa(index), nil
	}
	if digits, ok := strings.CutPrefix(pattern, "index:"); ok {
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > 20 {
			return "", fmt.Errorf("{%s}: the number of digits must be from 1 to 20", pattern)
		}
		return fmt.Sprintf("%0*d", n, index), nil
	}
	if size, ok := strings.CutPrefix(pattern, "index/"); ok {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return "", fmt.Errorf("{%s}: the size of a block must be at least 1", pattern)
		}
		return strconv.Itoa((index-1)/n + 1), nil
	}
	return "", fmt.Errorf("{%s} is none of {index}, {index:4}, {index/40} and {a,b,c}", pattern)
}
