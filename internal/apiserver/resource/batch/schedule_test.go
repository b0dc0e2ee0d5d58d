package batch

import (
	"strings"
	"testing"
)

// FuzzSchedule: whatever a user writes is answered without a panic, and what has other than five fields or a descriptor is refused.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"* * * * *", "*/5 0-6 1,15 jan-mar mon", "@daily", "@every 1h", "@every x", "TZ=UTC 0 0 * * *", "60 * * * *", "5-3 * * * *", "*/0 * * * *", "? ? ? ? ?", "", "-", "1-2-3 * * * *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := checkSchedule(text)
		if err == nil && !strings.Contains(text, "@") && !strings.Contains(text, "TZ=") && len(strings.Fields(text)) != len(cronFields) {
			t.Errorf("%q was taken", text)
		}
	})
}
