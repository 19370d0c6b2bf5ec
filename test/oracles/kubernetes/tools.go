//go:build tools

// Package tools names the programs of Kubernetes that tests use, so that go.mod pins what they are made of.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
