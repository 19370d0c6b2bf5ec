# shellcheck shell=bash
# Resolves and fetches with yum and yum-utils, on systems of the time before dnf. Sourced by rpm.sh, in a container.

# The options that yumdownloader and repoquery share.
yum_configure() {
  local file="$CURLEW_STATE/yum.conf" repositories=/etc/yum.repos.d
  if [[ -n "${CURLEW_REPOSITORIES-}" ]]; then repositories="$CURLEW_STATE/repos"; fi
  {
    printf '[main]\nreposdir=%s\ncachedir=%s/cache\nlogfile=%s/log/yum.log\n' "$repositories" "$CURLEW_STATE" \
      "$CURLEW_STATE"
    printf '%s\n' plugins=0 skip_missing_names_on_install=0 skip_if_unavailable=0 timeout=30 retries=3 deltarpm=0 \
      multilib_policy=best 'exclude=*.i386 *.i486 *.i586 *.i686'
    if [[ -n "${CURLEW_AUTHORITIES-}" ]]; then printf 'sslcacert=%s\n' "$CURLEW_AUTHORITIES"; fi
  } >"$file"
  YUM_WORDS=(-c "$file")
  # A root without packages has nothing installed, so every dependency is included.
  if [[ "$CURLEW_RESOLVE" == all ]]; then
    YUM_WORDS+=(--installroot="$CURLEW_STATE/root" --releasever="${CURLEW_OS##*-}")
  fi
}

# usage: yum_run COMMAND WORD…; sets YUM_SAID, and writes a problem when yum says that it failed
yum_run() {
  local status=0 command="$1"
  shift
  YUM_SAID="$("$command" "${YUM_WORDS[@]}" "$@" 2>&1 </dev/null)" || status=$?
  printf '%s\n' "$YUM_SAID"
  printf '%s\n' "$YUM_SAID" | awk -F '\t' '
    function put(kind, a, b) { printf b == "" ? "%s\t%s\n" : "%s\t%s\t%s\n", kind, a, b; found = 1 }
    { gsub(/\t/, " ") }
    /^No Match for argument / { put("missing", substr($0, 23)); next }
    /No space left on device/ { put("full", ENVIRON["CURLEW_OUT"]); next }
    /Errno 256|Cannot (find|retrieve)/ && !down { put("repository", "-", $0); down = 1; next }
    /^ *Error: / || /requires: |conflicts with / { if (++shown <= 12) put("conflict", $0) }
    END { exit !found }
  ' >>"$RESULT/problem" && return 1
  return "$status"
}

# Packages whose repository asks for it must be signed by a key of that repository.
yum_check_signatures() {
  local file said status=0
  sed -n 's/^gpgkey *= *//p' "${CURLEW_REPOSITORIES:-/dev/null}" | tr -s ' ,' '\n' | sort -u | while IFS= read -r file; do
    if [[ -n "$file" ]]; then rpm --import "$file"; fi
  done
  if ! grep -rqs '^gpgcheck *= *1' "${CURLEW_REPOSITORIES:-/etc/yum.repos.d}"; then return 0; fi
  for file in "$CURLEW_OUT"/*.rpm; do
    said="$(rpm --checksig "$file" 2>&1)" || status=1
    case "$said" in
      *'NOT OK'* | *MISSING*) status=1 ;;
      *pgp* | *gpg* | *signatures*) ;;
      *) status=1 ;;
    esac
    if ((status != 0)); then
      rpm_problem signature - "$said"
      return 1
    fi
  done
}

# What yumdownloader would fetch: files of an earlier run with the same name and size are not fetched again.
yum_take_known() {
  local url file
  [[ -n "${CURLEW_KNOWN-}" ]] || return 0
  yum_run yumdownloader --urls "$@" || return 1
  while IFS= read -r url; do
    file="$CURLEW_KNOWN/${url##*/}"
    if [[ -f "$file" && ! -L "$file" ]]; then cp "$file" "$CURLEW_OUT/"; fi
  done < <(printf '%s\n' "$YUM_SAID" | grep -E '^[a-z]+://[^ ]+\.rpm$')
}

yum_list() {
  local file name version arch sum size=0 known="$CURLEW_STATE/known" ids="$CURLEW_STATE/ids"
  yum_run repoquery --pkgnarrow=available -a --qf '%{name} %{version} %{release} %{arch} %{repoid}' >/dev/null ||
    return 1
  printf '%s\n' "$YUM_SAID" | awk 'NF == 5 { print $1 "-" $2 "-" $3 "." $4 "\t" $5 }' >"$ids"
  for file in "$CURLEW_OUT"/*.rpm; do
    IFS=$'\t' read -r name version arch < <(rpm -qp --qf \
      '%{NAME}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\t%{ARCH}\n' --nosignature "$file")
    sum="$(sha256sum <"$file")"
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${file##*/}" "$name" "$version" "$arch" "${sum%% *}" \
      "$(awk -F '\t' -v key="$name-${version#*:}.$arch" '$1 == key { print $2; exit }' "$ids")"
    if ! grep -qxF "${file##*/}" "$known"; then size=$((size + $(stat -c %s "$file"))); fi
  done >"$RESULT/packages.tsv"
  printf '%s\n' "$size" >"$RESULT/fetched"
  # Names that the operator installs are wanted of systems with dnf only.
  : >"$RESULT/requires"
  rpm -qp --qf '%{BUILDTIME}\n' --nosignature "$CURLEW_OUT"/*.rpm | sort -n | tail -n 1 >"$CURLEW_STATE/revision"
}

# usage: yum_collect NAME…
yum_collect() {
  local words=()
  yum_configure
  if [[ "$CURLEW_RESOLVE" != none ]]; then words+=(--resolve); fi
  # bash before 4.4 takes an empty array for an unset one.
  yum_take_known ${words[@]+"${words[@]}"} "$@" &&
    (cd "$CURLEW_OUT" && find . -name '*.rpm' -printf '%f\n') >"$CURLEW_STATE/known" &&
    yum_run yumdownloader ${words[@]+"${words[@]}"} --destdir="$CURLEW_OUT" "$@" &&
    yum_check_signatures &&
    yum_list
}
