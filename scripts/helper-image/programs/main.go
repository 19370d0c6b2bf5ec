// The programs of the helper image: one file under several names, as busybox is one.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if os.Getenv(cookieName) == cookieValue {
		serveVelero()
		return
	}
	var err error
	switch filepath.Base(os.Args[0]) {
	case "network":
		err = network(os.Args[1:])
	case "kurl":
		err = kurl(os.Args[1:])
	default:
		err = fmt.Errorf("started by velero as a plugin, or under the name network or kurl")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// Of kurl the image has what is run in pods; everything else is for the node.
func kurl(words []string) error {
	switch {
	case len(words) > 1 && words[0] == "object-store" && words[1] == "sync":
		return syncStores(words[2:])
	case len(words) > 0 && words[0] == "sync-object-store":
		return syncStores(words[1:])
	}
	return fmt.Errorf("%q: not supported in this image, which has object-store sync only", words)
}
