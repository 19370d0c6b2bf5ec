// Command rclone is rclone with what tests and benchmarks ask of it alone: folders and S3 as places, copies from one to
// the other, and a server. The whole of rclone takes three times as long to compile.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/backend/s3"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/copyto"
	_ "github.com/rclone/rclone/cmd/serve"
	_ "github.com/rclone/rclone/cmd/serve/s3"
	_ "github.com/rclone/rclone/cmd/sync"
)

func main() {
	cmd.Main()
}
