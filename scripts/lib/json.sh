# shellcheck shell=bash
# Small changes of JSON files by text.

# usage: insertOrReplaceJsonParam FILE NAME VALUE
# Sets one member of type string in an object; a file that is missing or holds nothing is made.
insertOrReplaceJsonParam() {
  local file="$1" text='' member="\"$2\": \"$3\"" pattern="\"$2\" *: *\"[^\"]*\"" rest
  if [[ -f "$file" ]]; then text="$(cat "$file")"; fi
  if [[ "$text" =~ $pattern ]]; then
    rest="${text#*"${BASH_REMATCH[0]}"}"
    text="${text%%"${BASH_REMATCH[0]}"*}$member$rest"
  elif ((${#text} >= 4)) && [[ "$text" == *\{* ]]; then
    text="${text%%\{*}{$member, ${text#*\{}"
  else
    text="{$member}"
  fi
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$text" >"$file"
}
