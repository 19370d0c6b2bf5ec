//go:build tools

// Package tools names the API server of an earlier minor that tests use, so that go.mod pins what it is made of.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
