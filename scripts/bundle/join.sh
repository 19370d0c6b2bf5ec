#!/usr/bin/env bash
# Says that this bundle cannot do what its name promises.
echo "join.sh: joining a node to a cluster is not supported by the curlew in this bundle; ./install.sh installs on this machine" >&2
exit 64
