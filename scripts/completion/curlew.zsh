#compdef curlew
# Completion of curlew for zsh: curlew completion zsh >~/.zfunc/_curlew, with ~/.zfunc in fpath before compinit

_curlew() {
  local -a found values shown
  local line
  found=("${(@f)$(curlew __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for line in "${(@)found[2,-1]}"; do
    [[ -n "$line" ]] || continue
    values+=("${line%%$'\t'*}")
    shown+=("${line/$'\t'/  }")
  done
  (( $#values )) && compadd -l -d shown -a values
  [[ "$PREFIX" == --*=* ]] && compset -P '*='
  case "${found[1]}" in
    files) _files ;;
    folders) _files -/ ;;
  esac
}

if [[ "$funcstack[1]" == _curlew ]]; then
  _curlew "$@"
else
  compdef _curlew curlew
fi
