# shellcheck shell=bash
# The functions of the scripts that curlew serve sends: it appends the installer spec, as the function
# curlew_spec, and the call of curlew_start as the last line, so a truncated script runs nothing.

curlew_stop() {
  [[ -z "$CURLEW_PART" ]] || rm -rf "$CURLEW_PART"
  printf '%s: %s\n' "$CURLEW_NAME" "$2" >&2
  exit "$1"
}

# usage: curlew_get URL FILE
curlew_get() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 5 --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=5 --output-document="$2" "$1"
  else
    curlew_stop 14 'neither curl nor wget is installed'
  fi
}

# usage: curlew_is FILE SHA256
curlew_is() {
  [[ -f "$1" ]] && printf '%s  %s\n' "$2" "$1" | sha256sum --check &>/dev/null
}

# usage: curlew_has FOLDER SHA256; in a folder of another user it could be replaced after verification
curlew_has() {
  [[ -O "$1" ]] && curlew_is "$1/bin/curlew" "$2"
}

# usage: curlew_bring URL SHA256 FOLDER; puts the program into the folder, where it appears atomically
curlew_bring() {
  # A name that cannot be guessed: other users may be able to write to the folder.
  CURLEW_PART="$(mkdir -p "${3%/*}" && mktemp -d "$3.part.XXXXXXXXXX")" ||
    curlew_stop 25 "cannot write to ${3%/*}; set CURLEW_CACHE to another folder"
  chmod 755 "$CURLEW_PART"
  curlew_get "$1" "$CURLEW_PART/curlew.tar.gz" || curlew_stop 12 "cannot fetch $1"
  tar -xzf "$CURLEW_PART/curlew.tar.gz" -C "$CURLEW_PART" || curlew_stop 15 "what came from $1 is damaged"
  curlew_is "$CURLEW_PART/bin/curlew" "$2" ||
    curlew_stop 15 "what came from $1 is not the curlew that this script was made for"
  rm -rf "$CURLEW_PART/curlew.tar.gz" "$3"
  # Another of these scripts may have been faster.
  mv -T "$CURLEW_PART" "$3" 2>/dev/null || curlew_has "$3" "$2" ||
    curlew_stop 25 "cannot write to $3; set CURLEW_CACHE to another folder"
  rm -rf "$CURLEW_PART"
  CURLEW_PART=''
}

# usage: curlew_start NAME BASE RELEASE ID SHA256_AMD64 SHA256_ARM64 WORD…; - means an unknown checksum
curlew_start() {
  CURLEW_NAME="$1" CURLEW_PART=''
  local base="$2" release="$3" id="$4" sum='-' arch host libc least='glibc 2.28'
  case "$(uname -m)" in
    x86_64) arch=amd64 sum="$5" ;;
    aarch64) arch=arm64 sum="$6" ;;
  esac
  shift 6
  [[ "$sum" != - ]] || curlew_stop 22 "$base has no curlew for $(uname -m)"
  libc="$(getconf GNU_LIBC_VERSION 2>/dev/null || true)"
  if [[ -n "$libc" && "$(printf '%s\n' "$least" "$libc" | sort -V | head -n 1)" != "$least" ]]; then
    curlew_stop 22 "this system has $libc, and curlew needs $least or newer"
  fi
  local cache="${CURLEW_CACHE:-/var/cache/curlew}"
  if [[ -z "${CURLEW_CACHE-}" && "$(id -u)" != 0 ]]; then cache="${XDG_CACHE_HOME:-$HOME/.cache}/curlew/serve"; fi
  local folder="$cache/$sum"
  curlew_has "$folder" "$sum" || curlew_bring "$base/tool/curlew-linux-$arch.tar.gz" "$sum" "$folder"
  [[ -x "$folder/bin/curlew" ]] || curlew_stop 25 "$folder/bin/curlew cannot be executed: set CURLEW_CACHE to another folder"
  case "$CURLEW_NAME" in
    install.sh | join.sh | upgrade.sh)
      (umask 077 && curlew_spec >"$folder/$id.yaml") || curlew_stop 25 "cannot write to $folder"
      host="${base#*://}"
      if [[ "$base" == http:* ]]; then set -- --allow-http "${host%%/*}" "$@"; fi
      set -- "${CURLEW_NAME%.sh}" --from "$base/dist" --release "$release" --installer "$folder/$id.yaml" "$@"
      ;;
  esac
  # Its hints suggest commands to type, and curlew is not in PATH.
  export CURLEW_CALLED="$folder/bin/curlew"
  # Standard input is the rest of this script: hooks with questions need the terminal.
  if { true </dev/tty; } 2>/dev/null; then exec "$folder/bin/curlew" "$@" </dev/tty; fi
  exec "$folder/bin/curlew" "$@" </dev/null
}
