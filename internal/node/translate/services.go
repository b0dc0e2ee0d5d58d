package translate

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ServiceVariables are the variables that tell a container where services are, in the form that Docker links had: {NAME}_SERVICE_HOST,
// {NAME}_PORT and so on. The Service default/kubernetes is always among them; the others unless the pod has enableServiceLinks: false.
func ServiceVariables(ctx context.Context, src Sources, pod *v1.Pod) (map[string]string, error) {
	vars := map[string]string{}
	masters, err := src.Services(ctx, v1.NamespaceDefault)
	if err != nil {
		return nil, fmt.Errorf("services of namespace %s: %w", v1.NamespaceDefault, err)
	}
	for _, s := range masters {
		if s.Name == "kubernetes" {
			addService(vars, s)
		}
	}
	if pod.Spec.EnableServiceLinks != nil && !*pod.Spec.EnableServiceLinks {
		return vars, nil
	}
	own := masters
	if pod.Namespace != v1.NamespaceDefault {
		if own, err = src.Services(ctx, pod.Namespace); err != nil {
			return nil, fmt.Errorf("services of namespace %s: %w", pod.Namespace, err)
		}
	}
	for _, s := range own {
		addService(vars, s)
	}
	return vars, nil
}

func addService(vars map[string]string, s *v1.Service) {
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone || len(s.Spec.Ports) == 0 {
		return
	}
	name := strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
	vars[name+"_SERVICE_HOST"] = s.Spec.ClusterIP
	vars[name+"_SERVICE_PORT"] = strconv.Itoa(int(s.Spec.Ports[0].Port))
	for i, p := range s.Spec.Ports {
		if p.Name != "" {
			vars[name+"_SERVICE_PORT_"+strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))] = strconv.Itoa(int(p.Port))
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = v1.ProtocolTCP
		}
		lower, port := strings.ToLower(string(protocol)), strconv.Itoa(int(p.Port))
		url := lower + "://" + net.JoinHostPort(s.Spec.ClusterIP, port)
		if i == 0 {
			vars[name+"_PORT"] = url
		}
		prefix := fmt.Sprintf("%s_PORT_%s_%s", name, port, strings.ToUpper(lower))
		vars[prefix] = url
		vars[prefix+"_PROTO"] = lower
		vars[prefix+"_PORT"] = port
		vars[prefix+"_ADDR"] = s.Spec.ClusterIP
	}
}
