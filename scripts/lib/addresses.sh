# shellcheck shell=bash
# Addresses and hosts.

isValidIpv4() {
  [[ "${1-}" =~ ^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$ ]]
}

isValidIpv6() {
  [[ "${1-}" =~ ^([0-9a-fA-F]{0,4}:){1,7}[0-9a-fA-F]{0,4}$ ]]
}

# Prints an IPv6 address in brackets, any other address unchanged: the part before the port in a URL.
curlew_url_host() {
  if isValidIpv6 "$1"; then printf '[%s]\n' "$1"; else printf '%s\n' "$1"; fi
}

# Prints the items of comma-separated lists, each once, in order, without empty ones.
unique_no_proxy_addresses() {
  local -a items kept=()
  local item
  IFS=, read -r -d '' -a items <<<"${1-}" || true
  for item in "${items[@]}"; do
    item="${item//[[:space:]]/}"
    if [[ -n "$item" ]]; then kept+=("$item"); fi
  done
  if ((${#kept[@]} == 0)); then
    echo
    return 0
  fi
  printf '%s\n' "${kept[@]}" | LC_ALL=C sort -u | paste -sd,
}

curlew_ask_cloud() {
  local from=http://169.254.169.254 path
  local -a header=()
  case "$1" in
    google)
      header=(--header 'Metadata-Flavor: Google')
      path=/computeMetadata/v1/instance/network-interfaces/0/access-configs/0/external-ip
      ;;
    amazon) path=/latest/meta-data/public-ipv4 ;;
    azure)
      header=(--header 'Metadata: true')
      path='/metadata/instance/network/interface/0/ipv4/ipAddress/0/publicIpAddress?api-version=2017-08-01&format=text'
      ;;
  esac
  curl --noproxy '*' --connect-timeout 2 --max-time 3 --max-filesize 1024 --fail --silent "${header[@]}" "$from$path"
}

# Sets PUBLIC_ADDRESS to the address from the machine's cloud, unless it is set. Without a cloud it stays empty.
discover_public_ip() {
  local cloud found
  [[ -z "${PUBLIC_ADDRESS-}" ]] || return 0
  PUBLIC_ADDRESS=
  for cloud in google amazon azure; do
    found="$(curlew_ask_cloud "$cloud")" || continue
    if isValidIpv4 "$found" || isValidIpv6 "$found"; then
      PUBLIC_ADDRESS="$found"
      return 0
    fi
  done
}

# usage: cert_has_san HOST:PORT NAME
# Status 0 if the certificate of the server contains the name.
cert_has_san() {
  openssl s_client -connect "$1" </dev/null 2>/dev/null | openssl x509 -noout -text 2>/dev/null |
    grep -A 1 'X509v3 Subject Alternative Name' | grep -qF -- "$2"
}
