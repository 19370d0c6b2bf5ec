// Shows what a container runtime tells over CRI, like two commands of crictl: it is built of modules that Kubernetes
// already has, in seconds.
//
//	cri [--timeout TIME] ps [--all] [--quiet]   containers
//	cri images [--output json]                  images, with whether they are pinned
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := grpc.NewClient("unix:///run/containerd/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	switch {
	case slices.Contains(words, "images"):
		answer, err := runtime.NewImageServiceClient(connection).ListImages(ctx, &runtime.ListImagesRequest{})
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(answer)
	case slices.Contains(words, "ps"):
		filter := &runtime.ContainerFilter{}
		if !slices.Contains(words, "--all") {
			filter.State = &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_RUNNING}
		}
		answer, err := runtime.NewRuntimeServiceClient(connection).ListContainers(ctx, &runtime.ListContainersRequest{Filter: filter})
		if err != nil {
			return err
		}
		for _, one := range answer.Containers {
			if slices.Contains(words, "--quiet") {
				fmt.Println(one.Id)
			} else {
				fmt.Println(one.Id, one.State, one.Metadata.Name, one.Metadata.Attempt, one.Labels["io.kubernetes.pod.name"])
			}
		}
		return nil
	}
	return fmt.Errorf("usage: cri images | cri ps [--all] [--quiet]")
}
