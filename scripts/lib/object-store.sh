# shellcheck shell=bash
# The object store of the cluster: OBJECT_STORE_ACCESS_KEY, OBJECT_STORE_SECRET_KEY, OBJECT_STORE_CLUSTER_IP.

object_store_exists() {
  [[ -n "${OBJECT_STORE_ACCESS_KEY-}" && -n "${OBJECT_STORE_SECRET_KEY-}" && -n "${OBJECT_STORE_CLUSTER_IP-}" ]]
}

# True if the cluster has the credentials of Rook's or MinIO's store.
object_store_running() {
  kubernetes_resource_exists rook-ceph secret rook-ceph-object-user-rook-ceph-store-kurl ||
    kubernetes_resource_exists "${MINIO_NAMESPACE:-minio}" secret minio-credentials
}

# Converts hexadecimal bytes on standard input to bytes.
curlew_from_hex() {
  local hex text='' index
  read -r hex || true
  for ((index = 0; index < ${#hex}; index += 2)); do text+="\\x${hex:index:2}"; done
  printf '%b' "$text"
}

# usage: curlew_hmac_sha1 KEY TEXT
# Prints the HMAC in base64. The key is not an argument of a program, where every user of the machine could read it.
curlew_hmac_sha1() {
  local hex inner='' outer='' index byte digest
  hex="$(printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n')"
  if ((${#hex} > 128)); then
    hex="$(printf '%s' "$1" | sha1sum)"
    hex="${hex%% *}"
  fi
  for ((index = 0; index < 128; index += 2)); do
    byte="$((16#0${hex:index:2}))"
    printf -v inner '%s%02x' "$inner" "$((byte ^ 0x36))"
    printf -v outer '%s%02x' "$outer" "$((byte ^ 0x5c))"
  done
  digest="$({ curlew_from_hex <<<"$inner" && printf '%s' "$2"; } | sha1sum)"
  digest="$(curlew_from_hex <<<"$outer${digest%% *}" | sha1sum)"
  curlew_from_hex <<<"${digest%% *}" | base64
}

# usage: curlew_object_store METHOD BUCKET
# Signs with S3 signature version 2, which all these stores support.
curlew_object_store() {
  local method="$1" bucket="$2" now text signature
  local -a words=(--fail --silent --location --globoff --noproxy '*' --output /dev/null)
  now="$(LC_ALL=C TZ=UTC date '+%a, %d %b %Y %T +0000')"
  printf -v text '%s\n\n\n%s\nx-amz-acl:private\n/%s' "$method" "$now" "$bucket"
  signature="$(curlew_hmac_sha1 "${OBJECT_STORE_SECRET_KEY-}" "$text")"
  if [[ "$method" == HEAD ]]; then words+=(--head); else words+=(--request "$method"); fi
  printf 'header = "%s"\n' "Date: $now" 'x-amz-acl: private' \
    "Authorization: AWS ${OBJECT_STORE_ACCESS_KEY-}:$signature" |
    curl "${words[@]}" --config - "http://$(curlew_url_host "${OBJECT_STORE_CLUSTER_IP-}")/$bucket"
}

object_store_bucket_exists() {
  curlew_object_store HEAD "$1"
}

# usage: object_store_create_bucket BUCKET
# Status 1 if the store refuses; bails if no store is configured.
object_store_create_bucket() {
  if object_store_bucket_exists "$1"; then
    echo "object store bucket $1 exists"
    return 0
  fi
  if ! curlew_object_store PUT "$1"; then
    if object_store_exists; then return 1; fi
    bail "attempted to create bucket ${1//%/%%} but no object store configured"
  fi
  echo "object store bucket $1 created"
}
