// The programs of the grid's images that upstream would bring: one static file, which its name tells what to do.
//
//	pause                 waits, and collects processes that have lost their parent
//	pause -v              prints a version: the job with which kubeadm tests a cluster before an upgrade
//	flannel               flannel's CNI plugin: hands the node's subnet to the plugin "bridge"
//	web serve ADDRESS     serves the name of its host
//	web get URL           prints what the server answers; fails after 5 seconds
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var err error
	switch filepath.Base(os.Args[0]) {
	case "pause":
		if len(os.Args) == 2 && os.Args[1] == "-v" {
			fmt.Println("pause")
		} else {
			pause()
		}
	case "flannel":
		err = flannel()
	case "web":
		err = web(os.Args[1:])
	default:
		err = fmt.Errorf("unknown program %s", os.Args[0])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pause() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ended:
			return
		case <-children:
			for {
				if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
					break
				}
			}
		}
	}
}

// What flanneld writes into its file: FLANNEL_SUBNET and others, one a line.
func subnetOf(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[name] = value
		}
	}
	return found, nil
}

func flannel() error {
	command := os.Getenv("CNI_COMMAND")
	if command == "VERSION" {
		fmt.Println(`{"cniVersion":"1.0.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0"]}`)
		return nil
	}
	var conf struct {
		CNIVersion string         `json:"cniVersion"`
		Name       string         `json:"name"`
		Delegate   map[string]any `json:"delegate"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&conf); err != nil {
		return err
	}
	subnet, err := subnetOf("/run/flannel/subnet.env")
	if err != nil {
		if command == "DEL" {
			return nil
		}
		return err
	}
	mtu, err := strconv.Atoi(subnet["FLANNEL_MTU"])
	if err != nil {
		return err
	}
	_, network, err := net.ParseCIDR(subnet["FLANNEL_SUBNET"])
	if err != nil {
		return err
	}
	bridge := map[string]any{
		"cniVersion": conf.CNIVersion, "name": conf.Name, "type": "bridge", "bridge": "cni0", "mtu": mtu, "ipMasq": false,
		"isGateway": true,
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]string{{{"subnet": network.String()}}},
			"routes": []map[string]string{{"dst": subnet["FLANNEL_NETWORK"]}},
		},
	}
	for name, value := range conf.Delegate {
		bridge[name] = value
	}
	input, err := json.Marshal(bridge)
	if err != nil {
		return err
	}
	for _, folder := range filepath.SplitList(os.Getenv("CNI_PATH")) {
		path := filepath.Join(folder, "bridge")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		plugin := exec.Command(path)
		plugin.Stdin, plugin.Stdout, plugin.Stderr = strings.NewReader(string(input)), os.Stdout, os.Stderr
		return plugin.Run()
	}
	return fmt.Errorf("no plugin bridge in %s", os.Getenv("CNI_PATH"))
}

func web(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("usage: web serve ADDRESS | web get URL")
	}
	if words[0] == "serve" {
		http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
			name, _ := os.Hostname()
			fmt.Fprintln(answer, name)
		})
		return http.ListenAndServe(words[1], nil)
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(words[1])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(answer.Body, 1<<20))
	return err
}
