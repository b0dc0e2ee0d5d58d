package cli

import (
	"regexp"

	"github.com/spf13/pflag"
)

// credentials are what may stand in a URL before the host.
var credentials = regexp.MustCompile(`://[^/@\s]+@`)

// flagValues are the values of all flags, for those who look into a running cluster. Nothing secret is among them: keys are named by their files, and passwords in URLs are left out.
func flagValues(flags *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) { out[f.Name] = credentials.ReplaceAllString(f.Value.String(), "://(left out)@") })
	return out
}
