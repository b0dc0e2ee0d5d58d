package controllertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// command carries out one command and returns what it printed and what happened until everything settled.
func (e *Env) command(text, input string) string {
	words := strings.Fields(text)
	printed, err := e.dispatch(words[0], words[1:], input)
	e.Settle()
	if err != nil {
		printed += "error: " + err.Error() + "\n"
	}
	return e.Journal() + printed
}

func (e *Env) dispatch(name string, args []string, input string) (string, error) {
	switch name {
	case "apply":
		return "", e.apply(input)
	case "patch":
		return "", e.patchObject(args, input)
	case "delete":
		return "", e.deleteObject(args)
	case "advance":
		d, err := time.ParseDuration(args[0])
		if err == nil {
			e.Advance(d)
		}
		return "", err
	case "kubelet":
		e.kubelet = args[0] == "on"
		return "", nil
	case "pod":
		return "", e.setPods(args[0], args[1:])
	case "pods":
		var out strings.Builder
		for _, pod := range e.Pods() {
			fmt.Fprintln(&out, podLine(pod))
		}
		return out.String(), nil
	case "allow":
		e.API.Allow(args[0], args[1], args[2])
		return "", nil
	case "get":
		return e.getObjects(args)
	}
	return "", fmt.Errorf("no such command: %s", name)
}

// resource finds a resource by its plural, and the dynamic client for it.
func (e *Env) resource(plural, namespace string) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(e.config())
	if err != nil {
		return nil, err
	}
	r := e.API.named(plural)
	switch {
	case r == nil:
		return nil, fmt.Errorf("no such resource: %s", plural)
	case r.Namespaced:
		return client.Resource(r.GroupVersionResource).Namespace(namespace), nil
	}
	return client.Resource(r.GroupVersionResource), nil
}

// split reads "namespace/name" or "name".
func split(ref string) (namespace, name string) {
	if before, after, found := strings.Cut(ref, "/"); found {
		return before, after
	}
	return "default", ref
}

// apply creates the objects of a YAML text, or replaces their labels, annotations, spec and data.
func (e *Env) apply(text string) error {
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return err
		}
		if err := e.applyObject(o); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) applyObject(o *unstructured.Unstructured) error {
	ctx := context.Background()
	if r := e.API.named(o.GetKind()); o.GetNamespace() == "" && r != nil && r.Namespaced {
		o.SetNamespace("default")
	}
	client, err := e.resource(o.GetKind(), o.GetNamespace())
	if err != nil {
		return err
	}
	current, err := client.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		_, err = client.Create(ctx, o, metav1.CreateOptions{})
		return err
	}
	o.SetResourceVersion(current.GetResourceVersion())
	o.SetOwnerReferences(current.GetOwnerReferences())
	o.SetFinalizers(current.GetFinalizers())
	for key, value := range current.GetAnnotations() {
		if annotations := o.GetAnnotations(); annotations[key] == "" {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			o.SetAnnotations(annotations)
		}
	}
	_, err = client.Update(ctx, o, metav1.UpdateOptions{})
	return err
}

// patchObject merges YAML into an object: patch RESOURCE NAME [status].
func (e *Env) patchObject(args []string, text string) error {
	namespace, name := split(args[1])
	client, err := e.resource(args[0], namespace)
	if err != nil {
		return err
	}
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err
	}
	_, err = client.Patch(context.Background(), name, "application/merge-patch+json", body, metav1.PatchOptions{}, args[2:]...)
	return err
}

// deleteObject deletes: delete RESOURCE NAME [Foreground|Background|Orphan] [now].
func (e *Env) deleteObject(args []string) error {
	namespace, name := split(args[1])
	client, err := e.resource(args[0], namespace)
	if err != nil {
		return err
	}
	var options metav1.DeleteOptions
	for _, arg := range args[2:] {
		if arg == "now" {
			options.GracePeriodSeconds = new(int64)
			continue
		}
		policy := metav1.DeletionPropagation(arg)
		options.PropagationPolicy = &policy
	}
	return client.Delete(context.Background(), name, options)
}

// setPods brings pods into a state: pod NAME|all|PREFIX* STATE...
func (e *Env) setPods(which string, states []string) error {
	prefix, isPrefix := strings.CutSuffix(which, "*")
	for _, pod := range e.Pods() {
		if which == "all" || pod.Name == which || (isPrefix && strings.HasPrefix(pod.Name, prefix)) {
			if err := e.SetPod(pod, states...); err != nil {
				return err
			}
		}
	}
	return nil
}

// getObjects prints fields of objects: get RESOURCE [NAME|all] [PATH...].
func (e *Env) getObjects(args []string) (string, error) {
	namespace, name := "", "all"
	if len(args) > 1 {
		namespace, name = split(args[1])
		if name == "all" {
			namespace = ""
		}
	}
	client, err := e.resource(args[0], namespace)
	if err != nil {
		return "", err
	}
	list, err := client.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i := range list.Items {
		if o := &list.Items[i]; name == "all" || name == o.GetName() {
			fmt.Fprintln(&out, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
			if len(args) > 2 {
				out.WriteString(e.fields(o, args[2:]))
			}
		}
	}
	return out.String(), nil
}

// fields prints parts of an object as YAML, with times as distances from the start.
func (e *Env) fields(o *unstructured.Unstructured, paths []string) string {
	var out strings.Builder
	for _, path := range paths {
		value, found, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
		if !found {
			fmt.Fprintf(&out, "  %s: -\n", path)
			continue
		}
		text, _ := yaml.Marshal(map[string]any{path: e.relative(value)})
		for line := range strings.Lines(string(text)) {
			out.WriteString("  " + line)
		}
	}
	return out.String()
}

func (e *Env) relative(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = e.relative(inner)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = e.relative(out[i])
		}
		return out
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return "t+" + at.Sub(e.start).String()
		}
	}
	return value
}
