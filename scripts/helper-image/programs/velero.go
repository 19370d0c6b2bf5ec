package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/hashicorp/go-plugin"
	"github.com/vmware-tanzu/velero/pkg/plugin/generated"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Velero starts its plugins with this in their environment.
const (
	cookieName  = "VELERO_PLUGIN"
	cookieValue = "hello"
)

const (
	pluginName = "kurl.sh/restore-kotsadm-plugin"
	kind       = "RestoreItemAction"
	kotsadm    = "kotsadm"
	account    = "/var/run/secrets/kubernetes.io/serviceaccount/"
)

// serveVelero is a plugin for restores, such as kURL's add-on of velero configures by a ConfigMap: kotsadm is restored with
// the proxy settings and the certificates of the cluster that it comes into, not of the one that it was saved in.
func serveVelero() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: 2, MagicCookieKey: cookieName, MagicCookieValue: cookieValue},
		Plugins: plugin.PluginSet{
			"PluginLister": &service{register: func(server *grpc.Server) {
				generated.RegisterPluginListerServer(server, lister{})
			}},
			kind: &service{register: func(server *grpc.Server) {
				generated.RegisterRestoreItemActionServer(server, restorer{})
			}},
		},
		GRPCServer: plugin.DefaultGRPCServer,
	})
}

type service struct {
	plugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

func (s *service) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.register(server)
	return nil
}

func (s *service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("a plugin is no client")
}

type lister struct{}

func (lister) ListPlugins(context.Context, *generated.Empty) (*generated.ListPluginsResponse, error) {
	own := &generated.PluginIdentifier{Command: os.Args[0], Kind: kind, Name: pluginName}
	return &generated.ListPluginsResponse{Plugins: []*generated.PluginIdentifier{own}}, nil
}

type restorer struct{}

func (restorer) AppliesTo(
	context.Context, *generated.RestoreItemActionAppliesToRequest,
) (*generated.RestoreItemActionAppliesToResponse, error) {
	return &generated.RestoreItemActionAppliesToResponse{ResourceSelector: &generated.ResourceSelector{
		IncludedNamespaces: []string{"default"},
		// Those that a deployment has made, too: it would replace them if they were different.
		IncludedResources: []string{"deployments", "statefulsets", "replicasets", "pods"},
	}}, nil
}

func (restorer) Execute(
	ctx context.Context, request *generated.RestoreItemActionExecuteRequest,
) (*generated.RestoreItemActionExecuteResponse, error) {
	item, err := restored(request.Item, func() (map[string]string, error) { return config(ctx) })
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &generated.RestoreItemActionExecuteResponse{Item: item}, nil
}

type object = map[string]any

// restored is the item as it is to be restored. Numbers keep every digit.
func restored(item []byte, config func() (map[string]string, error)) ([]byte, error) {
	decoder := json.NewDecoder(strings.NewReader(string(item)))
	decoder.UseNumber()
	var whole object
	if err := decoder.Decode(&whole); err != nil {
		return nil, fmt.Errorf("the item to be restored: %w", err)
	}
	pod := podOf(whole)
	if pod == nil {
		return item, nil
	}
	values, err := config()
	if err != nil || len(values) == 0 {
		return item, err
	}
	adapt(pod, values)
	return json.Marshal(whole)
}

func podOf(whole object) object {
	metadata, _ := whole["metadata"].(object)
	labels, _ := metadata["labels"].(object)
	spec, _ := whole["spec"].(object)
	template, _ := spec["template"].(object)
	templateSpec, _ := template["spec"].(object)
	switch whole["kind"] {
	case "Deployment", "StatefulSet":
		if metadata["name"] == kotsadm {
			return templateSpec
		}
	case "ReplicaSet":
		if labels["app"] == kotsadm {
			return templateSpec
		}
	case "Pod":
		if labels["app"] == kotsadm {
			return spec
		}
	}
	return nil
}

func adapt(pod object, values map[string]string) {
	for _, container := range objects(pod["containers"]) {
		if container["name"] != kotsadm {
			continue
		}
		for _, name := range []string{"NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY"} {
			if value, given := values[name]; given {
				setVariable(container, name, value)
			}
		}
	}
	path := values["hostCAPath"]
	for _, volume := range objects(pod["volumes"]) {
		if onHost, ok := volume["hostPath"].(object); ok && path != "" && volume["name"] == "host-cacerts" {
			onHost["path"] = path
		}
	}
}

func setVariable(container object, name, value string) {
	for _, variable := range objects(container["env"]) {
		if variable["name"] == name {
			delete(variable, "valueFrom")
			variable["value"] = value
			return
		}
	}
	if value != "" {
		list, _ := container["env"].([]any)
		container["env"] = append(list, object{"name": name, "value": value})
	}
}

func objects(list any) []object {
	items, _ := list.([]any)
	found := make([]object, 0, len(items))
	for _, item := range items {
		if one, ok := item.(object); ok {
			found = append(found, one)
		}
	}
	return found
}

// config is what the ConfigMap of this plugin says, in the namespace of Velero; nothing where there is none.
func config(ctx context.Context) (map[string]string, error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	certificate, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	authorities.AppendCertsFromPEM(certificate)
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	address := url.URL{
		Scheme:   "https",
		Host:     host,
		Path:     "/api/v1/namespaces/" + os.Getenv("VELERO_NAMESPACE") + "/configmaps",
		RawQuery: url.Values{"labelSelector": {"velero.io/plugin-config," + pluginName + "=" + kind}}.Encode(),
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}}
	answer, err := client.Do(asked)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list the ConfigMaps of %s: %s", pluginName, answer.Status)
	}
	return configOf(body)
}

func configOf(list []byte) (map[string]string, error) {
	var found struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
	}
	if err := json.Unmarshal(list, &found); err != nil {
		return nil, err
	}
	if len(found.Items) > 1 {
		return nil, fmt.Errorf("%d ConfigMaps configure %s, and there may be one", len(found.Items), pluginName)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return found.Items[0].Data, nil
}
