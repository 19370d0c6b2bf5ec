# shellcheck shell=bash
# Completion of curlew for bash 4.4 and newer: source <(curlew completion bash)

_curlew() {
  local line="${COMP_LINE:0:COMP_POINT}" word='' typed words=() found=() paths
  # COMP_WORDS is also split at = : and @, which are parts of words of curlew.
  read -ra words <<<"$line"
  [[ "$line" == *[[:space:]] || ${#words[@]} -eq 0 ]] && words+=('')
  typed="${words[${#words[@]} - 1]}"
  mapfile -t found < <(curlew __complete "${words[@]:1}" 2>/dev/null)
  paths="${found[0]-none}"
  COMPREPLY=()
  # Readline replaces only $2: what follows its last separator, or begins with it if that is an @.
  word="${typed%"${2-}"}"
  local each
  for each in "${found[@]:1}"; do
    each="${each%%$'\t'*}"
    COMPREPLY+=("${each#"$word"}")
  done
  case "$paths" in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
  esac
}

complete -F _curlew curlew
