#!/usr/bin/env bats
# The service of the agent: written from settings, and restarted only after the hook, which may be its own.
# shellcheck disable=SC2034,SC2317
load setup

prepare() {
  DIR="$PWD" CURLEW_AGENT_VERSION=1.0.0
  mkdir -p packages/curlew-agent/1.0.0/assets
  echo program >packages/curlew-agent/1.0.0/assets/curlew
  # shellcheck source=/dev/null
  source "$BATS_TEST_DIRNAME/../../packages/curlew-agent/1.0.0/install.sh"
  CURLEW_AGENT_PROGRAM="$PWD/curlew-agent" CURLEW_AGENT_UNIT="$PWD/curlew-agent.service"
  systemctl() {
    echo "systemctl $*" >>calls
    [[ "$1" != is-active ]] || [[ -e active ]]
  }
  systemd-run() { echo "systemd-run $*" >>calls; }
}

@test "the agent is installed with its settings, and started" {
  prepare
  CURLEW_AGENT_FROM=https://packages.example.com
  curlew-agent
  [ -x curlew-agent ]
  grep -qx "ExecStart=$PWD/curlew-agent agent run --kubeconfig /etc/kubernetes/admin.conf --from https://packages.example.com" curlew-agent.service
  grep -qx 'systemctl start --no-block curlew-agent' calls
}

@test "an agent that updates itself is restarted after the hook has ended" {
  prepare
  touch active
  curlew-agent
  grep -q '^systemd-run .*restart curlew-agent$' calls
  run ! grep -q '^systemctl \(re\)\?start' calls
}

@test "its removal leaves no file" {
  prepare
  curlew-agent
  curlew-agent_uninstall
  [ ! -e curlew-agent ]
  [ ! -e curlew-agent.service ]
}
