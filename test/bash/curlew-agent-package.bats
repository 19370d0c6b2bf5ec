#!/usr/bin/env bats
# The service of the agent: written from settings, and left to end by itself if it runs the hook.
# shellcheck disable=SC2034,SC2317
load setup

prepare() {
  DIR="$PWD" CURLEW_AGENT_VERSION=1.0.0
  mkdir -p packages/curlew-agent/1.0.0/assets
  echo program >packages/curlew-agent/1.0.0/assets/curlew
  # shellcheck source=/dev/null
  source "$BATS_TEST_DIRNAME/../../packages/curlew-agent/1.0.0/install.sh"
  CURLEW_AGENT_PROGRAM="$PWD/curlew-agent" CURLEW_AGENT_UNIT="$PWD/curlew-agent.service"
  CURLEW_AGENT_CGROUP="$PWD/cgroup"
  echo 0::/user.slice/session-1.scope >cgroup
  systemctl() {
    echo "systemctl $*" >>calls
    [[ "$1" != is-active ]] || [[ -e active ]]
  }
}

@test "the agent is installed with its settings, and started" {
  prepare
  CURLEW_AGENT_FROM=https://packages.example.com
  curlew-agent
  [ -x curlew-agent ]
  grep -qFx "ExecStart=\"$PWD/curlew-agent\" \"agent\" \"run\" \"--kubeconfig\" \"/etc/kubernetes/admin.conf\" \"--from\" \"https://packages.example.com\"" curlew-agent.service
  grep -qx 'systemctl start --no-block curlew-agent' calls
}

@test "systemd gets each setting as it is" {
  prepare
  CURLEW_AGENT_FROM='https://a/$HOME?x=%20' CURLEW_AGENT_KUBECONFIG='/etc/a;b "c" \d'
  curlew-agent
  grep -qF ' "/etc/a;b \"c\" \\d" "--from" "https://a/$$HOME?x=%%20"' curlew-agent.service
}

@test "an operator's update restarts the service" {
  prepare
  touch active
  curlew-agent
  grep -qx 'systemctl restart curlew-agent' calls
}

@test "an agent that updates or removes itself is neither stopped nor started by its hook" {
  prepare
  touch active
  echo 0::/system.slice/curlew-agent.service >cgroup
  curlew-agent
  curlew-agent_uninstall
  run ! grep -q '^systemctl \(re\)\?st' calls
  [ ! -e curlew-agent ]
}

@test "an operator's removal stops the service, and leaves no file" {
  prepare
  curlew-agent
  curlew-agent_uninstall
  grep -qx 'systemctl stop curlew-agent' calls
  [ ! -e curlew-agent ]
  [ ! -e curlew-agent.service ]
}
