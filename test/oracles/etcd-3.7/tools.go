//go:build tools

// Package tools names etcd and its tool for files, so that go.mod pins what it is made of.
package tools

import (
	_ "go.etcd.io/etcd/etcdutl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
