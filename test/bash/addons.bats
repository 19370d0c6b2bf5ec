#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

addon() {
  DIR=.
  mkdir -p "addons/$1/$2"
  cat >"addons/$1/$2/install.sh"
}

@test "addon_install begins with an empty kustomize folder and a fresh install.sh" {
  addon cert-manager 1.0 <<'SH'
cert-manager() { echo "installed $(ls -A kustomize/cert-manager | wc -l) $REPORTING_CONTEXT_INFO"; }
cert-manager_join() { :; }
SH
  mkdir -p kustomize/cert-manager
  touch kustomize/cert-manager/old
  run --separate-stderr addon_install cert-manager 1.0
  [ "$status" -eq 0 ]
  [ "$output" = 'installed 0 addon cert-manager 1.0' ]
  addon_install cert-manager 1.0 >/dev/null
  [ "$ADDONS_HAVE_HOST_COMPONENTS" = 1 ]
  run addon_install absent ''
  [ "$status" -eq 0 ]
}

@test "containerd is installed by containerd_install" {
  addon containerd 1.6 <<<'containerd_install() { echo yes; }'
  run --separate-stderr addon_install containerd 1.6
  [ "$output" = yes ]
}

@test "hooks are called when they are defined" {
  demo_pre_init() { echo pre; }
  demo_post_init() { echo post; }
  [ "$(addon_pre_init demo)" = pre ]
  [ "$(addon_post_init demo)" = post ]
  addon_pre_init other
  addon_post_init other
}

@test "addon_join loads images first, and only calls what is defined" {
  DIR=.
  load_images() { echo "load $1"; }
  demo_join() { echo join; }
  [ "$(addon_join demo 1 2>/dev/null)" = "$(lines 'load ./addons/demo/1/images' join)" ]
  [ "$(addon_join other 1)" = 'load ./addons/other/1/images' ]
  [ "$(addon_load other '')" = '' ]
}

@test "addon_fetch takes what is here, downloads what may be, and names what lacks" {
  demo_value=0
  addon demo 1 <<<'demo_value=1'
  addon_fetch demo 1
  [ "$demo_value" = 1 ]
  package_download() {
    mkdir -p assets
    tar czf assets/demo-2.tar.gz --transform s,/1,/2, addons
  }
  DIST_URL=https://d addon_fetch demo 2
  [ -f addons/demo/2/install.sh ]
  AIRGAP=1 DIST_URL=https://d run addon_fetch demo 3
  [ "$status" -eq 1 ]
  [[ "$output" == *'demo 3 is not in this bundle'* ]]
  addon_fetch demo ''
}

@test "addon_exists, addon_preflight, addon_cleanup" {
  addon demo 1 <<<''
  addon_exists demo 1
  run ! addon_exists demo 2
  [ "$(addon_preflight demo 1)" = '' ]
  touch addons/demo/1/host-preflight.yaml
  [ "$(addon_preflight demo 1)" = ./addons/demo/1/host-preflight.yaml ]
  addon_cleanup
  [ ! -e addons ]
}

@test "addon_outro calls the outro of each add-on here" {
  addon a 1 <<<''
  addon b-c 1 <<<''
  b-c_outro() { echo told; }
  [ "$(addon_outro)" = told ]
}

@test "what was applied is noted in kURL's ConfigMap when there is a merged spec" {
  DIR=.
  kubectl() { echo "$*" >call; }
  addon_set_has_been_applied demo
  [ ! -e call ]
  cat >yamlutil <<'SH'
#!/bin/sh
echo "$*" >&2
printf '{"version":"1"}'
SH
  chmod +x yamlutil
  MERGED_YAML_SPEC=merged.yaml BIN_YAMLUTIL=./yamlutil
  [ "$(get_addon_config cert-manager 2>&1 >/dev/null)" = '-j -fp merged.yaml -jf spec.certManager' ]
  addon_set_has_been_applied demo
  [ "$(cat call)" = "patch configmaps -n kurl kurl-current-config --type merge -p \
{\"data\":{\"addons-demo\":\"$(printf '{"version":"1"}' | base64)\"}}" ]
  addon_set_has_been_applied containerd
  [ -s containerd-last-applied ]
}

@test "reports go nowhere" {
  run report_addon_start a 1
  [ "$status$output" = 0 ]
  run report_addon_success a 1
  [ "$status$output" = 0 ]
}
