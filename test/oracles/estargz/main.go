// Reads a package the way a container runtime reads an eStargz layer: the table of contents by its digest, then every
// regular file through the random-access reader, each chunk checked against its digest.
// usage: estargz PACKAGE [TOC-DIGEST]; prints one JSON object a file: name, mode, size, sha256.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/containerd/stargz-snapshotter/estargz"
	digest "github.com/opencontainers/go-digest"
)

type file struct {
	Name   string `json:"name"`
	Mode   int64  `json:"mode"`
	Size   int64  `json:"size"`
	Sha256 string `json:"sha256"`
}

func main() {
	if err := list(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "estargz:", err)
		os.Exit(1)
	}
}

func list(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: estargz PACKAGE [TOC-DIGEST]")
	}
	archive, err := os.Open(args[0])
	if err != nil {
		return err
	}
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	reader, err := estargz.Open(io.NewSectionReader(archive, 0, info.Size()))
	if err != nil {
		return err
	}
	expected := reader.TOCDigest()
	if len(args) > 1 {
		expected = digest.Digest(args[1])
	}
	verifier, err := reader.VerifyTOC(expected)
	if err != nil {
		return err
	}
	root, ok := reader.Lookup("")
	if !ok {
		return fmt.Errorf("the archive has no root")
	}
	return walk(reader, verifier, root, json.NewEncoder(os.Stdout))
}

func walk(reader *estargz.Reader, verifier estargz.TOCEntryVerifier, folder *estargz.TOCEntry, out *json.Encoder) error {
	var failed error
	folder.ForeachChild(func(_ string, entry *estargz.TOCEntry) bool {
		if entry.Type == "dir" {
			failed = walk(reader, verifier, entry, out)
		} else {
			failed = read(reader, verifier, entry, out)
		}
		return failed == nil
	})
	return failed
}

func read(reader *estargz.Reader, verifier estargz.TOCEntryVerifier, entry *estargz.TOCEntry, out *json.Encoder) error {
	content, err := reader.OpenFile(entry.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	whole := sha256.New()
	for offset := int64(0); offset < entry.Size; {
		chunk, ok := reader.ChunkEntryForOffset(entry.Name, offset)
		if !ok {
			return fmt.Errorf("%s: no chunk at %d", entry.Name, offset)
		}
		check, err := verifier.Verifier(chunk)
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
		part := io.NewSectionReader(content, chunk.ChunkOffset, chunk.ChunkSize)
		if _, err := io.Copy(io.MultiWriter(whole, check), part); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
		if !check.Verified() {
			return fmt.Errorf("%s: the chunk at %d has another digest", entry.Name, offset)
		}
		offset = chunk.ChunkOffset + chunk.ChunkSize
	}
	return out.Encode(file{entry.Name, entry.Mode & 0o7777, entry.Size, hex.EncodeToString(whole.Sum(nil))})
}
