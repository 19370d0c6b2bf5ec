#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

# A server with one file, in the words that curl is called with here.
serve() {
  curl() {
    echo "${*: -1}" >>asked
    if [[ "$1" == -I* ]]; then
      printf 'HTTP/1.1 200 OK\r\nETag: "Tag-1"\r\n'
    else
      if [[ -s fail ]]; then
        code="$(head -n 1 fail)"
        sed -i 1d fail
        return "$code"
      fi
      echo content >"$3"
    fi
  }
}

@test "case 19: HTTP 404 is no reason to try again" {
  curl() {
    echo x >>tries
    return 22
  }
  run package_download_url_with_retry https://127.0.0.1/404 out
  [ "$status" -eq 22 ]
  [ "$(wc -l <tries)" -eq 1 ]
}

@test "a cut transfer is tried again, up to a number of times" {
  serve
  lines 18 56 >fail
  package_download_url_with_retry https://h/f out
  [ "$(cat out)" = content ]
  curl() {
    echo x >>tries
    return 18
  }
  run package_download_url_with_retry https://h/f out 4
  [ "$status" -eq 18 ]
  [ "$(wc -l <tries)" -eq 4 ]
}

@test "addresses of packages" {
  DIST_URL=https://d FALLBACK_URL=https://b.s3.amazonaws.com/dist
  [ "$(get_dist_url)" = https://d ]
  KURL_VERSION=v1
  [ "$(get_dist_url)" = https://d/v1 ]
  [ "$(get_dist_url_fallback)" = https://b.s3.amazonaws.com/dist/v1 ]
  IPV6_ONLY=1
  [ "$(get_dist_url_fallback)" = https://b.s3.dualstack.us-east-1.amazonaws.com/dist/v1 ]
  [ "$(package_filepath a.tar.gz)" = assets/a.tar.gz ]
}

@test "package_download keeps what has the same ETag" {
  serve
  DIST_URL=https://d
  run package_download a-1.tar.gz
  [ "$output" = 'Downloading package a-1.tar.gz' ]
  [[ "$(cat assets/Manifest)" =~ ^a-1.tar.gz\ Tag-1\ [0-9a-f]{32}$ ]]
  run package_download a-1.tar.gz
  [ "$output" = 'Package a-1.tar.gz already exists, not downloading' ]
  echo damaged >assets/a-1.tar.gz
  run package_download a-1.tar.gz
  [ "${lines[0]}" = 'Package a-1.tar.gz checksum does not match' ]
  [ "$(cat assets/a-1.tar.gz)" = content ]
  [ "$(wc -l <assets/Manifest)" -eq 1 ]
}

@test "package_download knows packages by their whole name" {
  serve
  DIST_URL=https://d
  package_download a-1.tar.gz
  package_download xa-1.tar.gz
  package_download a-1.tar.gz https://other/file
  [ "$(wc -l <assets/Manifest)" -eq 2 ]
}

@test "package_download asks the second place when the first fails" {
  serve
  DIST_URL=https://d FALLBACK_URL=https://f
  echo 7 >fail
  package_download a-1.tar.gz
  [ "$(tail -n 1 asked)" = https://f/a-1.tar.gz ]
  FALLBACK_URL=
  echo 7 >fail
  rm -r assets
  run package_download a-1.tar.gz
  [ "$status" -eq 1 ]
}

@test "package_download without an address warns and succeeds" {
  run package_download a-1.tar.gz
  [ "$status" -eq 0 ]
  [[ "$output" == *'DIST_URL not set, will not download a-1.tar.gz'* ]]
  run package_download
  [ "$status" -eq 1 ]
}
