//go:build tools

// Package tools names etcd, so that go.mod pins what it is made of.
package tools

import _ "go.etcd.io/etcd/server/v3"
