#!/usr/bin/env bats
# Functions and variables are used by what is tested.
# shellcheck disable=SC1003,SC2016,SC2034,SC2317
load setup

@test "case 32: isValidIpv6" {
  for address in 2001:0db8:85a3:0000:0000:8a2e:0370:7334 FE80:CD00:0:CDE:1257:0:211E:729C fe80::1 ::1; do
    isValidIpv6 "$address"
  done
  for name in '[fe80::1]' 10.0.0.1 example.com ''; do
    run ! isValidIpv6 "$name"
  done
  isValidIpv4 10.0.0.1
  run ! isValidIpv4 ::1
}

@test "case 32: discover_public_ip takes an address, and nothing else" {
  curl() { echo "$answer"; }
  answer=172.31.28.36 PUBLIC_ADDRESS=
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = 172.31.28.36 ]
  answer=FE80:CD00:0:CDE:1257:0:211E:729C PUBLIC_ADDRESS=
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = FE80:CD00:0:CDE:1257:0:211E:729C ]
  answer=invalid PUBLIC_ADDRESS=
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = '' ]
  answer=172.31.28.36 PUBLIC_ADDRESS=34.28.226.7
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = 34.28.226.7 ]
}

@test "discover_public_ip asks one cloud after the other, and no cloud is no failure" {
  curl() {
    [[ "$*" == *'Metadata: true'* ]] || return 7
    echo 20.1.2.3
  }
  PUBLIC_ADDRESS=
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = 20.1.2.3 ]
  curl() { return 7; }
  PUBLIC_ADDRESS=
  discover_public_ip
  [ "$PUBLIC_ADDRESS" = '' ]
}

@test "case 19: unique_no_proxy_addresses" {
  [ "$(unique_no_proxy_addresses 'a,b,b, ,a,c,a, ,b')" = a,b,c ]
  [ "$(unique_no_proxy_addresses '')" = '' ]
  [ "$(unique_no_proxy_addresses '10.96.0.0/22,.svc')" = .svc,10.96.0.0/22 ]
}

@test "cert_has_san reads the certificate that a server shows" {
  openssl() {
    [ "$1" = s_client ] || printf '%s\n' '   X509v3 Subject Alternative Name: ' '      DNS:a.example, IP Address:10.0.0.1'
  }
  cert_has_san 10.0.0.1:6443 a.example
  run ! cert_has_san 10.0.0.1:6443 aXexample
  openssl() { return 1; }
  run ! cert_has_san 10.0.0.1:6443 a.example
}
