package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

var bodyTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain"}

func FuzzBody(f *testing.F) {
	z := startFuzzed(f)
	places := slices.Concat(z.collections, z.subs, z.objects)
	methods := []string{http.MethodPost, http.MethodPut, http.MethodDelete}
	for i := range kindCases {
		path, body := z.seed(f, &kindCases[i])
		f.Add(uint16(slices.Index(places, path)), uint16(0), uint16(0), body)
		f.Add(uint16(slices.Index(places, path+"/a")), uint16(1), uint16(1), body)
	}
	for i := range z.subs {
		f.Add(uint16(len(z.collections)+i), uint16(i), uint16(0), []byte(`{"spec":{},"status":{}}`))
	}
	for i, body := range []string{"", "{", "null", "[]", `{"metadata":null}`, `{"kind":"List","items":[{}]}`, "k8s\x00", "k8s\x00\n\x04\n\x02v1\x12\x02\x12\x00", "\xd9\xd9\xf7\xa0", "a: &a [*a,*a]"} {
		f.Add(uint16(i), uint16(i), uint16(i%len(bodyTypes)), []byte(body))
	}
	f.Fuzz(func(t *testing.T, place, method, media uint16, body []byte) {
		z.do(t, pick(methods, method), pick(places, place)+"?dryRun=All&fieldValidation=Strict", map[string]string{"Content-Type": pick(bodyTypes, media)}, body)
	})
}

var patchTypes = []string{
	"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/apply-patch+cbor",
}

func FuzzPatch(f *testing.F) {
	z := startFuzzed(f)
	places := slices.Concat(z.objects, z.subs)
	for i := range kindCases {
		path, body := z.seed(f, &kindCases[i])
		place := uint16(slices.Index(places, path+"/a"))
		f.Add(place, uint16(1+i%3), body)
		f.Add(place, uint16(0), []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"copy","from":"/metadata","path":"/metadata/annotations"},{"op":"remove","path":"/spec"}]`))
		f.Add(place, uint16(2), []byte(`{"metadata":{"labels":{"$patch":"replace","a":"b"},"finalizers":["a/b"],"$deleteFromPrimitiveList/finalizers":["x"],"$setElementOrder/finalizers":["a/b"]},"spec":{"$retainKeys":["a"]}}`))
	}
	f.Fuzz(func(t *testing.T, place, media uint16, body []byte) {
		z.do(t, http.MethodPatch, pick(places, place)+"?dryRun=All&fieldManager=f", map[string]string{"Content-Type": pick(patchTypes, media)}, body)
	})
}

func FuzzQuery(f *testing.F) {
	z := startFuzzed(f)
	for i, query := range []string{
		"labelSelector=a%3Db,c+in+(d,e),!f", "fieldSelector=metadata.name%3Da,spec.nodeName!%3Db", "limit=1", "limit=-1", "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
		"resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=99999999999999999999", "watch=1&timeoutSeconds=1&allowWatchBookmarks=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"includeObject=Object", "pretty=1", "timeout=1ns", "labelSelector=" + strings.Repeat("a,", 100), "fieldSelector=a%5C,b%5C%3D%3D",
	} {
		f.Add(uint16(i*7), query)
	}
	f.Fuzz(func(t *testing.T, place uint16, query string) {
		z.do(t, http.MethodGet, pick(z.collections, place)+"?"+query, nil, nil)
	})
}

func FuzzPath(f *testing.F) {
	z := startFuzzed(f)
	methods := []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	paths := slices.Concat(z.collections, z.objects, z.subs, []string{
		"/", "/api", "/apis", "/apis/apps", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/version", "/livez/etcd", "/metrics", "/statusz", "/api/v1/watch/pods",
		"/api/v1/namespaces/default/pods/a/exec", "/api/v1/namespaces/default/services/a:b:c/proxy/x", "/api/v1/nodes/a/proxy/", "//api/v1/pods", "/api/v1/namespaces//pods", "/api/v1/namespaces/%2e%2e/pods",
		"/api/v1/namespaces/default/pods/%00", "/api/v1/namespaces/default/pods/a%2Fb", "/apis/apps/v1/namespaces/default/deployments/a/scale/x", "/.well-known/openid-configuration", "/openid/v1/jwks",
	})
	for i, path := range paths {
		f.Add(uint16(i), path)
	}
	f.Fuzz(func(t *testing.T, method uint16, path string) {
		if strings.Contains(path, "pprof") || !strings.HasPrefix(path, "/") {
			t.Skip("profiles take as long as they are asked to")
		}
		path, query, _ := strings.Cut(path, "?")
		z.do(t, pick(methods, method), path+"?dryRun=All&"+query, nil, []byte("{}"))
	})
}

func FuzzHeader(f *testing.F) {
	z := startFuzzed(f)
	f.Add(uint16(0), "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "", "", "", "", "")
	f.Add(uint16(1), "application/vnd.kubernetes.protobuf;type=watch", "application/json;charset=x", "Bearer abcdef.0123456789abcdef", "", "", "")
	f.Add(uint16(2), "*/*;q=0.1,text/*", "", "Bearer a.b.c", "system:node:n", "system:nodes", "a%2fb")
	f.Add(uint16(3), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "application/x; a=\"", "Basic YTpi", "system:serviceaccount:a:b", "", "scopes")
	f.Add(uint16(4), "application/cbor", "application/apply-patch+yaml", "", "u", "g", "%zz")
	f.Fuzz(func(t *testing.T, place uint16, accept, content, authorization, user, group, extra string) {
		path := pick(slices.Concat(z.collections, []string{"/api", "/apis", "/openapi/v3", "/metrics", "/version", "/statusz"}), place)
		header := map[string]string{
			"Accept": accept, "Content-Type": content, "Authorization": authorization, "Impersonate-User": user, "Impersonate-Group": group, "Impersonate-Uid": extra,
			"Accept-Encoding": content, "Audit-Id": extra, "Origin": group, "If-None-Match": content, "Traceparent": accept,
		}
		if extra != "" {
			header["Impersonate-Extra-"+extra] = group
		}
		z.do(t, http.MethodGet, path, header, nil)
		z.do(t, http.MethodPost, path+"?dryRun=All", header, []byte("{}"))
	})
}
