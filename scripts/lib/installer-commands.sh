# shellcheck shell=bash
# Parts of the commands that operators run on other nodes.

# usage: build_installer_prefix ID VERSION URL PROXY HTTPS-PROXY
# Prints the part before the name of a script: "curl -fsSL URL/version/VERSION/ID/", or "cat " without a URL.
build_installer_prefix() {
  local id="${1-}" version="${2-}" url="${3-}" proxy="${4-}" https_proxy="${5-}" flags=''
  if [[ -z "$url" ]]; then
    printf 'cat \n'
    return 0
  fi
  if [[ "$url" == https* && -n "$https_proxy" ]]; then proxy="$https_proxy"; fi
  if [[ -n "$proxy" ]]; then flags=" -x $proxy"; fi
  if [[ -n "$version" ]]; then url="$url/version/$version"; fi
  printf 'curl -fsSL%s %s/%s/\n' "$flags" "$url" "$id"
}

# Prints the flag with a leading space, or nothing for the default folder.
get_kurl_install_directory_flag() {
  if [[ -n "${1-}" && "$1" != /var/lib/kurl ]]; then printf ' kurl-install-directory=%s\n' "$1"; fi
}
