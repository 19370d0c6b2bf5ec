#!/usr/bin/env bash
# Says that this bundle cannot do what its name promises.
echo "tasks.sh: maintenance tasks are not supported by the curlew in this bundle; ./install.sh installs on this machine" >&2
exit 64
