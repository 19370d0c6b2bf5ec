# shellcheck shell=bash
# Shared functions of the CI steps. They work on the add-on repository that is the current folder, with
# the curlew of their own checkout. Secrets come from the environment and are never printed.

CURLEW_HOME="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
# Folder for data that steps pass to each other, below the current folder; git ignores it.
# shellcheck disable=SC2034
CI_FOLDER=.curlew/ci

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

curlew() {
  node "$CURLEW_HOME/dist/cli/main.js" "$@"
}

# usage: set_output NAME VALUE; a step's output, on standard output outside of a workflow
set_output() {
  [[ "$2" != *$'\n'* ]] || die "the output $1 has more than one line"
  if [[ -n "${GITHUB_OUTPUT-}" ]]; then printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; fi
  printf '%s=%s\n' "$1" "$2"
}

# usage: … | summary TITLE; shows standard input, and adds it to the page of the workflow's run
summary() {
  local text
  text="$(cat)"
  printf '%s\n' "$text"
  [[ -n "${GITHUB_STEP_SUMMARY-}" ]] || return 0
  # shellcheck disable=SC2016
  printf '### %s\n\n```text\n%s\n```\n' "$1" "$text" >>"$GITHUB_STEP_SUMMARY"
}

# usage: json EXPRESSION; prints the value of a JavaScript expression over `value`, the JSON on standard input
json() {
  # shellcheck disable=SC2016
  node -e '
    const value = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
    const result = new Function("value", `return ${process.argv[1]}`)(value);
    console.log(typeof result === "string" ? result : JSON.stringify(result));
  ' "$1"
}

# usage: read_addons ARGUMENT…; sets ADDON_LIST to the arguments, else to the words of $ADDONS
read_addons() {
  ADDON_LIST=("$@")
  ((${#ADDON_LIST[@]} > 0)) || read -ra ADDON_LIST <<<"${ADDONS-}"
  local addon
  for addon in "${ADDON_LIST[@]}"; do
    [[ "$addon" =~ ^[A-Za-z0-9][A-Za-z0-9._+/-]*$ && "$addon" != *..* ]] || die "not the name of an add-on: $addon"
  done
}

# The release string of the checked-out commit in the staging store: its day in UTC and its first 12 digits.
# The same commit always has the same release.
release_of_commit() {
  TZ=UTC git show --no-patch --date=format-local:%Y.%m.%d --format='v%cd-%H' HEAD | cut -c 1-24
}

# usage: require VARIABLE MEANING
require() {
  [[ -n "${!1-}" ]] || die "$1 is not set: $2"
}

# A missing variable or secret of a repository is empty, which the AWS SDK treats as a value.
for variable in "${!AWS_@}"; do
  if [[ -z "${!variable}" ]]; then unset "$variable"; fi
done
