# shellcheck shell=bash
# Templates and kustomizations, with the exact behavior that add-ons' files rely on.

# usage: render_yaml_file FILE
# Renders the text like the arguments of `echo "…"`: variables and commands expand, double quotes vanish, runs of blanks between
# them collapse.
render_yaml_file() {
  eval "echo \"$(<"$1")\""
}

render_file() {
  render_yaml_file "$1"
}

# The same for $DIR/yaml/NAME.
render_yaml() {
  render_yaml_file "$DIR/yaml/$1"
}

# usage: render_yaml_file_2 FILE
# Renders the text like a here-document: variables and commands expand, quotes stay.
render_yaml_file_2() {
  local curlew_text
  if [[ ! -f "$1" ]]; then
    logFail "File ${1//%/%%} does not exist"
    return 1
  fi
  curlew_text="$(<"$1")"
  # A final backslash would escape the line that ends the here-document.
  if [[ "$curlew_text" =~ (^|[^\\])(\\\\)*\\$ ]]; then curlew_text+=$'\n'; fi
  eval "cat <<CURLEW_END_OF_TEMPLATE
$curlew_text
CURLEW_END_OF_TEMPLATE"
}

# usage: curlew_insert FILE KEY ENTRY
# Adds a line with the key if there is none, then inserts the entry below every line with it: the last inserted entry becomes
# the first of the list. The key may be anywhere in a line, first with and then without a closing quote. If that
# inserts nothing, or inserts into a value that is not a block list, a warning names file and line.
curlew_insert() {
  local file="$1" key="$2" entry="$3" line found='' text='' number=0 done=''
  if [[ -f "$file" ]]; then
    while IFS= read -r line || [[ -n "$line" ]]; do
      text+="$line"$'\n'
      number=$((number + 1))
      if [[ -z "$found" && "$line" =~ ${key}[\ \"]*: ]]; then found="$number"; fi
      if [[ "$line" == *"$key:"* ]]; then
        done=1
        if [[ ! "$line" =~ ^"$key":[[:space:]]*(#.*)?$ ]]; then curlew_insert_warning "$1" "$number" "$line" "$entry"; fi
      fi
    done <"$file"
  fi
  if [[ -z "$found" ]]; then
    text+="$key:"$'\n'
  elif [[ -z "$done" ]]; then
    logWarn "${file//%/%%}:$found: \"${key//%/%%}\" is in quotes, so nothing was inserted: remove the quotes"
  fi
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ "$line" == *"$key:"* ]]; then printf '%s\n' "$entry"; fi
  done <<<"${text%$'\n'}" >"$file"
}

# usage: curlew_insert_warning FILE LINE TEXT ENTRY
curlew_insert_warning() {
  local text="$1:$2: \"${4%%$'\n'*}\" was inserted below \"$3\", which begins no list"
  logWarn "${text//%/%%}"
}

insert_resources() {
  curlew_insert "$1" resources "- $2"
}

insert_patches_strategic_merge() {
  curlew_insert "$1" patchesStrategicMerge "- $2"
}

# usage: insert_patches_json_6902 KUSTOMIZATION PATCH GROUP VERSION KIND NAME NAMESPACE
insert_patches_json_6902() {
  curlew_insert "$1" patchesJson6902 "- target:
    group: ${3-}
    version: ${4-}
    kind: ${5-}
    name: ${6-}
    namespace: ${7-}
  path: $2"
}

# Prints the minor version of kubectl: it prints JSON, `version.Info{… Minor:"20+" …}`, or only `v1.20.5`.
curlew_kubectl_minor() {
  local answer
  answer="$(kubectl version --client --output=json 2>/dev/null || kubectl version --client 2>/dev/null || true)"
  if [[ "$answer" =~ \"?[Mm]inor\"?:\ *\"([0-9]+) || "$answer" =~ [Cc]lient\ [Vv]ersion:\ *v?[0-9]+\.([0-9]+) ]]; then
    printf '%s\n' "${BASH_REMATCH[1]}"
  fi
}

# kubectl 1.21 replaced bases with resources.
insert_bases() {
  local minor=''
  if command -v kubectl >/dev/null 2>&1; then
    minor="$(curlew_kubectl_minor)"
  elif [[ "${KUBERNETES_VERSION-}" =~ ^v?[0-9]+\.([0-9]+) ]]; then
    minor="${BASH_REMATCH[1]}"
  fi
  if ((${minor:-0} > 20)); then
    insert_resources "$1" "$2"
  else
    curlew_insert "$1" bases "- $2"
  fi
}

# Prints standard input with a prefix on every line.
yaml_indent() {
  local line
  while IFS= read -r line; do
    printf '%s%s\n' "${1-}" "$line"
  done
  if [[ -n "$line" ]]; then printf '%s%s' "${1-}" "$line"; fi
}

yaml_escape_string_quotes() {
  sed 's/"/\\"/g'
}

# Prints standard input as one line, with line ends as `\n`.
yaml_newline_to_literal() {
  awk 'NR > 1 { printf "%s", "\\n" } { printf "%s", $0 } END { if (NR > 0) print "" }'
}

# usage: get_yaml_from_multidoc_yaml FILE NAME
# Prints the documents that match `name: NAME`; status 1 if there is none.
get_yaml_from_multidoc_yaml() {
  # awk's escapes in -v would change the name; it does not interpret the environment.
  CURLEW_PATTERN="name: $2" awk '
    function flush() {
      if (text ~ ENVIRON["CURLEW_PATTERN"]) { if (found++) print "---"; printf "%s", text }
      text = ""
    }
    /^---[ \t]*$/ { flush(); next }
    { text = text $0 "\n" }
    END { flush(); exit found ? 0 : 1 }
  ' "$1"
}
