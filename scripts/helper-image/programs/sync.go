package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// syncStores copies every bucket of one object store, with all of its objects, into another. What the other has already is
// written again; what it has besides stays. Flags that are not given are taken from the environment (KURL_SOURCE_HOST …),
// where others do not see the keys.
func syncStores(words []string) error {
	flags := flag.NewFlagSet("object-store sync", flag.ContinueOnError)
	source, dest := storeFlags(flags, "source"), storeFlags(flags, "dest")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown word %q", flags.Arg(0))
	}
	flags.VisitAll(func(one *flag.Flag) {
		if value := os.Getenv("KURL_" + strings.ToUpper(one.Name)); one.Value.String() == "" && value != "" {
			_ = one.Value.Set(value)
		}
	})
	from, err := source.open()
	if err != nil {
		return err
	}
	to, err := dest.open()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	buckets, err := from.ListBuckets(ctx)
	if err != nil {
		return fmt.Errorf("list the buckets of %s: %w", *source.host, err)
	}
	for _, bucket := range buckets {
		count, err := syncBucket(ctx, from, to, bucket.Name)
		if err != nil {
			return fmt.Errorf("bucket %s from %s to %s: %w", bucket.Name, *source.host, *dest.host, err)
		}
		fmt.Printf("%s: %d objects copied\n", bucket.Name, count)
	}
	fmt.Printf("%d buckets copied from %s to %s\n", len(buckets), *source.host, *dest.host)
	return nil
}

type store struct{ name, host, key, secret *string }

func storeFlags(flags *flag.FlagSet, name string) store {
	return store{
		name:   &name,
		host:   flags.String(name+"_host", "", "host[:port] of the object store, without http://"),
		key:    flags.String(name+"_access_key_id", "", "access key"),
		secret: flags.String(name+"_access_key_secret", "", "secret key"),
	}
}

func (s store) open() (*minio.Client, error) {
	if *s.host == "" {
		return nil, fmt.Errorf("--%s_host is missing", *s.name)
	}
	// Inside a cluster object stores are spoken to without TLS.
	return minio.New(*s.host, &minio.Options{Creds: credentials.NewStaticV4(*s.key, *s.secret, "")})
}

func syncBucket(ctx context.Context, from, to *minio.Client, bucket string) (int, error) {
	exists, err := to.BucketExists(ctx, bucket)
	if err != nil {
		return 0, err
	}
	if !exists {
		if err := to.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}); err != nil {
			return 0, err
		}
	}
	count := 0
	for listed := range from.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true}) {
		if listed.Err != nil {
			return count, listed.Err
		}
		if err := copyObject(ctx, from, to, bucket, listed.Key); err != nil {
			return count, fmt.Errorf("%s: %w", listed.Key, err)
		}
		count++
	}
	return count, ctx.Err()
}

// What a list says of an object lacks its type and what its owner has noted: the object itself is asked.
func copyObject(ctx context.Context, from, to *minio.Client, bucket, key string) error {
	object, err := from.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer object.Close()
	about, err := object.Stat()
	if err != nil {
		return err
	}
	_, err = to.PutObject(ctx, bucket, key, object, about.Size, minio.PutObjectOptions{
		ContentType:     about.ContentType,
		ContentEncoding: about.Metadata.Get("Content-Encoding"),
		CacheControl:    about.Metadata.Get("Cache-Control"),
		UserMetadata:    about.UserMetadata,
	})
	return err
}
