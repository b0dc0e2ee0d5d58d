package apiserver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestCustomResources runs transcripts: a command, its input in YAML, "----", what the server answered, and an empty line. -update rewrites the answers.
//
//	define                          create a CustomResourceDefinition and wait until it is established
//	create RESOURCE [strict]        RESOURCE is "plural.version.group"
//	apply RESOURCE MANAGER [force]  on the server
//	patch RESOURCE NAME[/SUB]       a merge patch
//	get RESOURCE NAME[/SUB]         without what differs from run to run
//	table RESOURCE                  the columns of `kubectl get -o wide`
//	delete RESOURCE NAME
//	gone RESOURCE NAME              wait until there is no such object
//	served RESOURCE                 wait until there is such a resource: a changed definition is served a moment later
//	conditions NAME TYPE=STATUS     wait until the definition has the condition, and list all
func TestCustomResources(t *testing.T) {
	files, err := filepath.Glob("testdata/customresources/*.txt")
	must(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			got := scriptOn(t, startAPI(t)).run(string(text))
			switch {
			case *update:
				must(t, os.WriteFile(file, []byte(got), 0o644))
			case got != string(text):
				t.Errorf("%s differs (run with -update to rewrite it); now it is:\n%s", file, got)
			}
		})
	}
	if len(files) == 0 {
		t.Error("no transcripts")
	}
}

var definitions = schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}

// script speaks to an API as a transcript says.
type script struct {
	t        *testing.T
	config   *rest.Config
	dynamic  dynamic.Interface
	warnings warnings
	// cluster has the resources that are in no namespace.
	cluster map[schema.GroupResource]bool
}

type warnings []string

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	*w = append(*w, text)
}

func scriptOn(t *testing.T, a *api) *script {
	s := &script{t: t, cluster: map[schema.GroupResource]bool{definitions.GroupResource(): true}}
	s.config = rest.CopyConfig(a.config)
	s.config.WarningHandlerWithContext = &s.warnings
	var err error
	s.dynamic, err = dynamic.NewForConfig(s.config)
	must(t, err)
	return s
}

func (s *script) run(text string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		command, _, isCommand := strings.Cut(block, "----")
		if !isCommand {
			fmt.Fprintf(&out, "%s\n\n", block)
			continue
		}
		fmt.Fprintf(&out, "%s----\n", command)
		for strings.HasPrefix(command, "#") {
			_, command, _ = strings.Cut(command, "\n")
		}
		line, input, _ := strings.Cut(command, "\n")
		answer, err := s.command(strings.Fields(line), input)
		for _, warning := range s.warnings {
			fmt.Fprintf(&out, "Warning: %s\n", warning)
		}
		s.warnings = nil
		if err != nil {
			answer = failure(err)
		}
		if answer = moment.ReplaceAllString(strings.TrimRight(answer, "\n"), "TIME"); answer != "" {
			fmt.Fprintln(&out, answer)
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

var moment = regexp.MustCompile(`"?20\d\d-\d\d-\d\dT[0-9:]+Z"?`)

// failure is an error; if it has several causes they are listed in order, which the server does not keep.
func failure(err error) string {
	text := "Error: " + err.Error()
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) < 2 {
		return text
	}
	text, _, _ = strings.Cut(text, ": [")
	var causes []string
	for _, cause := range status.Status().Details.Causes {
		causes = append(causes, fmt.Sprintf("\n  %s: %s", cause.Field, cause.Message))
	}
	slices.Sort(causes)
	return text + strings.Join(causes, "")
}

func (s *script) command(words []string, input string) (string, error) {
	words = append(words, "", "", "")
	gvr := resourceOf(words[1])
	name, sub, _ := strings.Cut(words[2], "/")
	var subs []string
	if sub != "" {
		subs = []string{sub}
	}
	switch words[0] {
	case "define":
		return s.define(input)
	case "create":
		options := metav1.CreateOptions{FieldManager: "creator"}
		if words[2] == "strict" {
			options.FieldValidation = metav1.FieldValidationStrict
		}
		return s.show(s.client(gvr).Create(s.t.Context(), s.parse(input), options))
	case "apply":
		obj := s.parse(input)
		return s.show(s.client(gvr).Apply(s.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: words[2], Force: words[3] == "force"}))
	case "patch":
		body, err := yaml.YAMLToJSON([]byte(input))
		must(s.t, err)
		return s.show(s.client(gvr).Patch(s.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "patcher"}, subs...))
	case "get":
		return s.show(s.client(gvr).Get(s.t.Context(), name, metav1.GetOptions{}, subs...))
	case "table":
		return s.table(gvr)
	case "delete":
		return "", s.client(gvr).Delete(s.t.Context(), words[2], metav1.DeleteOptions{})
	case "gone":
		return "", s.await(func(ctx context.Context) (bool, error) {
			_, err := s.client(gvr).Get(ctx, words[2], metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	case "served":
		return "", s.await(func(ctx context.Context) (bool, error) {
			_, err := s.client(gvr).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	case "conditions":
		return s.conditions(words[1], words[2])
	}
	s.t.Fatalf("no command %q", words[0])
	return "", nil
}

// await looks until something is so that follows from earlier commands without anybody saying when.
func (s *script) await(condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(s.t.Context(), 5*time.Millisecond, 30*time.Second, true, condition)
}
