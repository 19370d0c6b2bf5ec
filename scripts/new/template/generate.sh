#!/usr/bin/env bash
# Makes addons/sample-addon/<version> from the files in base/ and the upstream files of that version.
# usage: generate.sh [--version=VERSION] [--from=FILE|URL|CHART] [--force]
# Without --version it makes the newest version; without --force it leaves an existing one alone.
# Writes sample_addon_version=VERSION to $GITHUB_OUTPUT if it has made one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

NAME='sample-addon'
# The source of a version: a URL with {version} in it, of YAML or of a chart archive; or oci://… of a chart; or
# the URL of a chart repository, and the chart's name.
UPSTREAM='sample-upstream'
CHART='sample-chart'
# The source of the newest version: a URL that redirects to …/releases/tag/<version>, or that returns JSON with
# "tag_name" or "version", or only the version. A chart has its own.
NEWEST='sample-newest'
# For helm template. Values of the chart are in values.yaml next to this file.
NAMESPACE='sample-namespace'

MAX_BYTES=67108864
version=''
work=''

fail() {
  printf 'generate.sh: %s\n' "$*" >&2
  exit 1
}

# usage: fetch URL FILE; prints the final URL after redirects
fetch() {
  curl --fail --silent --show-error --location --proto '=https,http' --retry 3 --connect-timeout 30 --max-time 600 \
    --max-filesize "$MAX_BYTES" --output "$2" --write-out '%{url_effective}' -- "$1" || fail "cannot fetch ${1%%\?*}"
}

# usage: is_version TEXT
is_version() {
  [[ "$1" =~ ^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$ && "$1" != *..* ]]
}

# usage: chart_words CHART; sets `words` to the arguments that name a chart for helm
chart_words() {
  case "$UPSTREAM" in
    oci://* | '') words=("$1") ;;
    *) words=("$1" --repo "$UPSTREAM") ;;
  esac
}

# Whether upstream is a chart registry or repository, which helm queries itself.
is_chart_source() {
  [[ "$UPSTREAM" == oci://* ]] || [[ -n "$CHART" && "$UPSTREAM" == http*://* && "$UPSTREAM" != *'{version}'* ]]
}

chart_reference() {
  if [[ "$UPSTREAM" == oci://* ]]; then printf '%s' "$UPSTREAM"; else printf '%s' "$CHART"; fi
}

need_helm() {
  command -v helm >/dev/null || fail 'upstream is a chart, and helm is not installed'
}

# usage: named KEY FILE; the first text of this key in JSON
named() {
  tr ',{}' '[\n*]' <"$2" | sed -nE "s/^[[:space:]]*\"$1\"[[:space:]]*:[[:space:]]*\"([^\"]*)\".*/\1/p" | sed -n 1p
}

newest_version() {
  local words found address
  if [[ -z "$NEWEST" ]] && is_chart_source; then
    need_helm
    chart_words "$(chart_reference)"
    helm show chart "${words[@]}" | sed -n 's/^version: *"\{0,1\}\([^"]*\)"\{0,1\} *$/\1/p'
    return
  fi
  [[ -n "$NEWEST" ]] || fail 'the newest version is unknown: use --version=…, or fill in NEWEST'
  address="$(fetch "$NEWEST" "$work/newest")" || exit 1
  if [[ "$address" == */releases/tag/* ]]; then
    found="${address##*/releases/tag/}"
  else
    found="$(named tag_name "$work/newest")"
    found="${found:-$(named version "$work/newest")}"
    found="${found:-$(awk 'NF > 0 { print $1; exit }' "$work/newest")}"
  fi
  # If the URL has its own v, it is not part of the version.
  if [[ "$UPSTREAM" == *'v{version}'* ]]; then found="${found#v}"; fi
  printf '%s\n' "$found"
}

# usage: render CHART VERSION FILE
render() {
  local words values=()
  need_helm
  if [[ -f values.yaml ]]; then values=(--values values.yaml); fi
  words=("$1")
  if is_chart_source && [[ "$1" == "$(chart_reference)" ]]; then chart_words "$1"; fi
  if [[ -n "$2" ]]; then words+=(--version "$2"); fi
  helm template "$NAME" "${words[@]}" --namespace "$NAMESPACE" --include-crds ${values[@]+"${values[@]}"} >"$3"
}

# usage: get_upstream VERSION SOURCE FILE
get_upstream() {
  local source="$2"
  if [[ -z "$source" ]] && is_chart_source; then
    render "$(chart_reference)" "$1" "$3"
    return
  fi
  source="${source:-$UPSTREAM}"
  [[ -n "$source" ]] || fail 'the location of upstream is unknown: use --from=…, or fill in UPSTREAM'
  source="${source//'{version}'/$1}"
  if [[ "$source" == oci://* ]]; then
    render "$source" "$1" "$3"
    return
  fi
  if [[ "$source" == http://* || "$source" == https://* ]]; then
    fetch "$source" "$work/fetched" >/dev/null
    case "${source%%\?*}" in *.tgz | *.tar.gz) mv "$work/fetched" "$work/chart.tgz" && source="$work/chart.tgz" ;;
      *) source="$work/fetched" ;; esac
  fi
  case "$source" in
    */Chart.yaml) render "${source%/Chart.yaml}" '' "$3" ;;
    *.tgz | *.tar.gz) render "$source" '' "$3" ;;
    *) if [[ -d "$source" ]]; then render "$source" '' "$3"; else cp "$source" "$3"; fi ;;
  esac
}

# usage: split FILE DEFINITIONS REST; creates both only if they are not empty
split() {
  LC_ALL=C awk -v definitions="$2" -v rest="$3" '
    function flush() {
      if (something) printf "---\n%s", text >(definition ? definitions : rest)
      text = ""
      something = definition = 0
    }
    NR == 1 { sub(/^\357\273\277/, "") }
    { sub(/\r$/, "") }
    /^---([ \t]|$)/ { flush(); sub(/^---[ \t]*/, ""); if ($0 == "" || /^#/) next }
    /^kind:[ \t]*["\047]?CustomResourceDefinition["\047]?[ \t]*$/ { definition = 1 }
    !/^[ \t]*(#.*)?$/ { something = 1 }
    { text = text $0 "\n" }
    END { flush() }
  ' "$1"
}

# usage: image_lines FILE; prints the lines of a Manifest, each image once
image_lines() {
  LC_ALL=C awk '
    function bare(text) {
      sub(/^[ \t]+/, "", text)
      sub(/^&[^ \t]+[ \t]+/, "", text)
      if (text ~ /^"/) { sub(/^"/, "", text); sub(/".*$/, "", text) }
      else if (text ~ /^\047/) { sub(/^\047/, "", text); sub(/\047.*$/, "", text) }
      else { sub(/[ \t]+#.*$/, "", text); sub(/[ \t]+$/, "", text) }
      return text
    }
    function reference(text) { return text ~ /^[A-Za-z0-9][A-Za-z0-9._:\/@-]*$/ && text !~ /__/ }
    function pinned(text) { return reference(text) && (text ~ /:[^\/]+$/ || text ~ /@/) }
    function hosted(text) { return pinned(text) && text ~ /^[^\/]*[.:][^\/]*\// }
    {
      line = $0
      sub(/^[ \t]*(-[ \t]+)*/, "", line)
      if (line ~ /^["\047]?image["\047]?:[ \t]/) {
        sub(/^["\047]?image["\047]?:/, "", line)
        if (pinned(bare(line))) print bare(line)
        variable = 0
        next
      }
      # The same in a map on one line.
      while (match(line, /[{,][ \t]*["\047]?image["\047]?:[ \t]*["\047]?[^"\047,} \t]+/)) {
        found = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/^[{,][ \t]*["\047]?image["\047]?:[ \t]*["\047]?/, "", found)
        if (pinned(found)) print found
      }
      if (line ~ /^name:[ \t]/) {
        sub(/^name:/, "", line)
        variable = bare(line) ~ /((^|_)IMAGE(_|$)|Image$)/
        next
      }
      if (line ~ /^value:[ \t]/) {
        sub(/^value:/, "", line)
        if (variable && hosted(bare(line))) print bare(line)
        variable = 0
        next
      }
      if (line ~ /^[A-Za-z0-9_.-]+:[ \t]/) {
        key = line
        sub(/:.*$/, "", key)
        sub(/^[^:]*:/, "", line)
        if (key ~ /((^|_)IMAGE(_|$)|Image$)/ && hosted(bare(line))) print bare(line)
        next
      }
      line = bare(line)
      if (line ~ /^--?[A-Za-z0-9-]*(image|reloader)[A-Za-z0-9-]*=/) {
        sub(/^[^=]*=/, "", line)
        if (hosted(line)) print line
      }
    }
  ' "$1" | LC_ALL=C sort -u | LC_ALL=C awk '
    # One image in two spellings is one image; an id is the last part of its name, with the part before it if
    # another image ends alike, and with the tag if that is not enough.
    {
      path = $0
      sub(/@.*$/, "", path)
      mark = ""
      if (match(path, /:[^\/]+$/)) { mark = substr(path, RSTART + 1); path = substr(path, 1, RSTART - 1) }
      if ($0 ~ /@/ && mark == "") { mark = $0; sub(/^.*@sha256:/, "", mark); mark = substr(mark, 1, 12) }
      first = path
      sub(/\/.*$/, "", first)
      host = path ~ /\// && (first ~ /[.:]/ || first == "localhost") ? first : ""
      if (host != "") path = substr(path, length(host) + 2)
      if (host == "" || host == "index.docker.io") host = "docker.io"
      if (host == "docker.io" && path !~ /\//) path = "library/" path
      full = $0
      suffix = full ~ /@/ ? full : ""
      sub(/^[^@]*/, "", suffix)
      key = host "/" path ":" ($0 ~ /@/ && $0 !~ /:[^\/]+@/ ? "" : mark) suffix
      if (key in seen) next
      seen[key] = 1
      count += 1
      references[count] = $0
      marks[count] = mark
      parts = split(path, part, "/")
      short[count] = part[parts]
      long[count] = parts > 1 ? part[parts - 1] "-" part[parts] : part[parts]
      times[short[count]] += 1
    }
    END {
      for (i = 1; i <= count; i += 1) { id[i] = times[short[i]] > 1 ? long[i] : short[i]; again[id[i]] += 1 }
      for (i = 1; i <= count; i += 1) {
        name = again[id[i]] > 1 ? id[i] "-" marks[i] : id[i]
        while (name in used) name = name "-2"
        used[name] = 1
        print "image " name " " references[i]
      }
    }
  '
}

# A repository with kURL's list of versions gets the new one at its marker.
list_version() {
  local list=../../../web/src/installers/versions.js
  [[ -f "$list" ]] || return 0
  awk -v marker="cron-$NAME-update" -v entry="    \"$1\"," '
    { print }
    index($0, marker) && !done { done = 1; if ((getline after) > 0) { if (after != entry) print entry; print after } else print entry }
  ' "$list" >"$work/list"
  cat "$work/list" >"$list"
}

# usage: make VERSION SOURCE FOLDER
make() {
  local file
  cp -R base "$3"
  while IFS= read -r -d '' file; do
    sed "s/__version__/$1/g" "$file" >"$work/filled"
    cat "$work/filled" >"$file"
  done < <(find "$3" -type f -print0)
  get_upstream "$1" "$2" "$work/upstream.yaml"
  split "$work/upstream.yaml" "$3/crds.yaml" "$3/upstream.yaml"
  [[ -f "$3/upstream.yaml" ]] || fail 'upstream is empty, or has only definitions'
  image_lines "$3/upstream.yaml" >>"$3/Manifest"
}

# usage: clean VERSION; restores the previous files unless the new version has replaced them
clean() {
  if [[ -e "$work/before" && ! -e "../$1" ]]; then mv "$work/before" "../$1"; fi
  rm -rf "$work"
}

main() {
  local source='' force='' word
  for word in "$@"; do
    case "$word" in
      --version=*) version="${word#*=}" ;;
      --from=*) source="${word#*=}" ;;
      --force) force=1 ;;
      *) fail "unknown argument $word" ;;
    esac
  done
  # Next to base/, so that a finished version only needs to be renamed.
  work="$(mktemp -d "$PWD/.new-XXXXXX")"
  trap 'clean "$version"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  if [[ -z "$version" ]]; then version="$(newest_version)"; fi
  is_version "$version" || fail "\"${version:0:120}\" cannot be a version"
  if [[ -e "../$version" && -z "$force" ]]; then
    printf '%s %s already exists\n' "$NAME" "$version"
    return
  fi
  make "$version" "$source" "$work/made"
  if [[ -e "../$version" ]]; then mv "../$version" "$work/before"; fi
  mv "$work/made" "../$version"
  list_version "$version"
  if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf '%s_version=%s\n' "${NAME//[^A-Za-z0-9]/_}" "$version" >>"$GITHUB_OUTPUT"; fi
  printf '%s %s is made\n' "$NAME" "$version"
}

main "$@"
