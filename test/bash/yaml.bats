#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 7: render_yaml_file_2 keeps quotes, and what is not set is empty" {
  cat >in.yaml <<'YAML'
namespace: ${VELERO_NS}
env:
- value: "$PROXY_ADDRESS"
- value: "${PROXY_HTTPS_ADDRESS}"
- value: "${NO_PROXY_ADDRESSES}"
YAML
  export PROXY_ADDRESS=a PROXY_HTTPS_ADDRESS=b NO_PROXY_ADDRESSES=c
  run render_yaml_file_2 in.yaml
  [ "$output" = "$(lines 'namespace: ' 'env:' '- value: "a"' '- value: "b"' '- value: "c"')" ]
}

@test "case 7: render_yaml_file_2 of a missing file has status 1" {
  run --separate-stderr render_yaml_file_2 none.yaml
  [ "$status" -eq 1 ]
  [ "$output" = '' ]
  # shellcheck disable=SC2154
  [[ "$stderr" == *none.yaml* ]]
}

@test "case 8: the two ways to render differ in quotes and blanks" {
  printf '%s\n' 'x: "a   b"' 'p: \$HOME' 'q: \"z\"' '' '' >in.yaml
  [ "$(render_yaml_file in.yaml; echo .)" = "$(lines 'x: a b' "p: \$HOME" 'q: "z"' .)" ]
  [ "$(render_yaml_file_2 in.yaml; echo .)" = "$(lines 'x: "a   b"' "p: \$HOME" 'q: \"z\"' .)" ]
}

@test "case 8: parentheses between quotes" {
  echo 'm: "(a)"' >in.yaml
  run --separate-stderr render_yaml_file in.yaml
  [ "$status" -eq 2 ]
  run render_yaml_file_2 in.yaml
  [ "$output" = 'm: "(a)"' ]
}

@test "both expand variables, commands and sums" {
  # shellcheck disable=SC2016
  printf '%s\n' 'a: $A' 'b: ${B:-d}' 'c: $(echo x)' 'd: `echo y`' 'e: $((1+1))' 'f: $1' "g: 'it'" 'h: \\' 'i: 1\' '2' >in.yaml
  export A=1
  wanted="$(lines 'a: 1' 'b: d' 'c: x' 'd: y' 'e: 2' 'f: in.yaml' "g: 'it'" 'h: \' 'i: 12')"
  [ "$(render_yaml_file in.yaml)" = "$wanted" ]
  [ "$(render_yaml_file_2 in.yaml)" = "$wanted" ]
}

@test "a value is inserted verbatim by render_yaml_file_2 and split by render_yaml_file" {
  # shellcheck disable=SC2016
  echo 'b: "$B"' >in.yaml
  export B='1   2'
  [ "$(render_yaml_file in.yaml)" = 'b: 1 2' ]
  [ "$(render_yaml_file_2 in.yaml)" = 'b: "1   2"' ]
}

@test "a failing command in a template has no influence on the status" {
  # shellcheck disable=SC2016
  echo 'b: $(false)' >in.yaml
  render_yaml_file in.yaml
  render_yaml_file_2 in.yaml
}

@test "render_yaml_file of a missing file prints an empty line, status 0" {
  run --separate-stderr render_yaml_file none.yaml
  [ "$status" -eq 0 ]
  [ "$(render_yaml_file none.yaml 2>/dev/null; echo .)" = $'\n.' ]
}

@test "render_yaml takes the name of a file in DIR/yaml" {
  mkdir yaml
  echo a >yaml/in.yaml
  DIR=. run render_yaml in.yaml
  [ "$output" = a ]
  run render_file yaml/in.yaml
  [ "$output" = a ]
}

@test "a backslash at the end of a file swallows nothing" {
  printf 'a: b\\' >in.yaml
  [ "$(render_yaml_file_2 in.yaml)" = 'a: b' ]
}

@test "case 8: insert_resources puts the last one first" {
  printf 'resources:\n- r1\n' >kustomization.yaml
  insert_resources kustomization.yaml r2
  insert_resources kustomization.yaml r3
  [ "$(cat kustomization.yaml)" = "$(lines resources: '- r3' '- r2' '- r1')" ]
}

@test "case 8: a quoted key passes for one, but nothing is inserted" {
  printf '"resources":\n- r1\n' >kustomization.yaml
  run insert_resources kustomization.yaml r2
  [ "$status" -eq 0 ]
  [ "$(cat kustomization.yaml)" = "$(lines '"resources":' '- r1')" ]
}

@test "insert_resources adds the key, to an empty file and to one without a line end too" {
  insert_resources new.yaml r1
  [ "$(cat new.yaml)" = "$(lines resources: '- r1')" ]
  printf 'namespace: x' >kustomization.yaml
  insert_resources kustomization.yaml 'a\b&c.yaml'
  [ "$(cat kustomization.yaml)" = "$(lines 'namespace: x' resources: '- a\b&c.yaml')" ]
}

@test "insert_* is not idempotent, and a comment passes for the key" {
  printf '# resources:\n' >kustomization.yaml
  insert_resources kustomization.yaml r
  insert_resources kustomization.yaml r
  [ "$(cat kustomization.yaml)" = "$(lines '# resources:' '- r' '- r')" ]
}

@test "insert_patches_strategic_merge" {
  insert_patches_strategic_merge kustomization.yaml p.yaml
  [ "$(cat kustomization.yaml)" = "$(lines patchesStrategicMerge: '- p.yaml')" ]
}

@test "insert_patches_json_6902 writes a target, with an empty group for the core one" {
  insert_patches_json_6902 kustomization.yaml p.yaml '' v1 Service s ns
  [ "$(cat kustomization.yaml)" = "$(lines patchesJson6902: '- target:' '    group: ' '    version: v1' \
    '    kind: Service' '    name: s' '    namespace: ns' '  path: p.yaml')" ]
}

@test "insert_bases follows the version of kubectl, or of the spec" {
  kubectl() { echo '{"clientVersion": {"minor": "20"}}'; }
  insert_bases old.yaml ../base
  [ "$(cat old.yaml)" = "$(lines bases: '- ../base')" ]
  kubectl() { echo '{"clientVersion": {"minor": "27+"}}'; }
  insert_bases new.yaml ../base
  [ "$(cat new.yaml)" = "$(lines resources: '- ../base')" ]
  # Text, which an older kubectl prints whatever it is asked for, or after it has refused to print JSON.
  kubectl() { echo 'Client Version: v1.20.5'; }
  insert_bases old-text.yaml ../base
  [ "$(cat old-text.yaml)" = "$(lines bases: '- ../base')" ]
  kubectl() { lines 'Client Version: v1.27.3' 'Kustomize Version: v5.0.1' 'Server Version: v1.19.1'; }
  insert_bases text.yaml ../base
  [ "$(cat text.yaml)" = "$(lines resources: '- ../base')" ]
  kubectl() {
    [[ "$*" != *--output* ]] || return 1
    echo 'Client Version: version.Info{Major:"1", Minor:"21+", GitVersion:"v1.21.1-gke.1"}'
  }
  insert_bases info.yaml ../base
  [ "$(cat info.yaml)" = "$(lines resources: '- ../base')" ]
  unset -f kubectl
  PATH=/nowhere KUBERNETES_VERSION=1.19.3 insert_bases spec.yaml ../base
  grep -q bases: spec.yaml || command -v kubectl
}

@test "case 10: yaml_indent, yaml_newline_to_literal, yaml_escape_string_quotes" {
  [ "$(printf 'a\n  b\nc' | yaml_indent '   ')" = "$(lines '   a' '     b' '   c')" ]
  [ "$(printf 'a\nb\nc\n' | yaml_newline_to_literal)" = 'a\nb\nc' ]
  [ "$(echo one | yaml_newline_to_literal)" = one ]
  [ "$(echo 'a: "blah3"' | yaml_escape_string_quotes)" = 'a: \"blah3\"' ]
}

@test "get_yaml_from_multidoc_yaml finds documents by name" {
  printf 'name: a\nx: 1\n---\nname: b\n---\nkind: k\nname: a\n' >in.yaml
  [ "$(get_yaml_from_multidoc_yaml in.yaml b)" = 'name: b' ]
  [ "$(get_yaml_from_multidoc_yaml in.yaml a)" = "$(lines 'name: a' 'x: 1' --- 'kind: k' 'name: a')" ]
  run get_yaml_from_multidoc_yaml in.yaml c
  [ "$status" -eq 1 ]
}
