# shellcheck shell=bash
# Packages that a hook downloads itself, in assets/ of the install folder. assets/Manifest has a line for each:
# name, ETag, md5.

get_dist_url() {
  printf '%s\n' "${DIST_URL-}${KURL_VERSION:+/$KURL_VERSION}"
}

# Amazon's default endpoint has no IPv6 address.
get_dist_url_fallback() {
  local url="${FALLBACK_URL-}${KURL_VERSION:+/$KURL_VERSION}"
  if [[ "${IPV6_ONLY-}" == 1 ]]; then url="${url/s3.amazonaws.com/s3.dualstack.us-east-1.amazonaws.com}"; fi
  printf '%s\n' "$url"
}

package_filepath() {
  printf '%s\n' "assets/$1"
}

# usage: package_matches_checksum PACKAGE MD5
package_matches_checksum() {
  local file sum
  file="$(package_filepath "$1")"
  [[ -n "${2-}" && -s "$file" ]] || return 1
  sum="$(md5sum <"$file")"
  if [[ "${sum%% *}" == "$2" ]]; then return 0; fi
  echo "Package $1 checksum does not match"
  return 1
}

# usage: package_download_url_with_retry URL FILE [TRIES]
# Retries only if the transfer was interrupted (curl's 18 and 56); otherwise returns curl's status immediately.
package_download_url_with_retry() {
  local try status=0
  for ((try = 0; try < ${3:-10}; try++)); do
    status=0
    curl -fL -o "$2" "$1" || status=$?
    if ((status != 18 && status != 56)); then return "$status"; fi
  done
  return "$status"
}

# usage: curlew_assets_line PACKAGE
# Sets etag and checksum for the caller from assets/Manifest.
curlew_assets_line() {
  local name first second rest
  etag='' checksum=''
  while read -r name first second rest; do
    if [[ "$name" == "$1" ]]; then etag="$first" checksum="$second"; fi
  done <assets/Manifest
}

# usage: package_download PACKAGE [URL]
# Downloads into assets/, unless the existing file has the server's ETag. Without DIST_URL and URL it warns and succeeds.
package_download() {
  local package="${1-}" override="${2-}" url file etag checksum latest kept
  if [[ -z "$package" ]]; then bail 'package_download called with no package name'; fi
  if [[ -z "$override" && -z "${DIST_URL-}" ]]; then
    logWarn "DIST_URL not set, will not download ${package//%/%%}"
    return 0
  fi
  url="${override:-$(get_dist_url)/$package}"
  file="$(package_filepath "$package")"
  mkdir -p assets
  touch assets/Manifest
  curlew_assets_line "$package"
  if [[ -n "$etag" ]] && ! package_matches_checksum "$package" "$checksum"; then etag=; fi
  latest="$(curl -IfsSL "$url" | awk -F'"' 'tolower($1) ~ /^etag:/ { etag = $2 } END { print etag }')"
  if [[ -n "$etag" && "$etag" == "$latest" ]]; then
    echo "Package $package already exists, not downloading"
    return 0
  fi
  kept="$(awk -v package="$package" '$1 != package' assets/Manifest)"
  printf '%s' "${kept:+$kept$'\n'}" >assets/Manifest
  rm -f "$file"
  echo "Downloading package $package"
  if ! package_download_url_with_retry "$url" "$file"; then
    if [[ -n "$override" || -z "${FALLBACK_URL-}" ]]; then return 1; fi
    package_download_url_with_retry "$(get_dist_url_fallback)/$package" "$file" || return
  fi
  checksum="$(md5sum <"$file")"
  printf '%s %s %s\n' "$package" "$latest" "${checksum%% *}" >>assets/Manifest
}
