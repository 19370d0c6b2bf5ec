# shellcheck shell=bash
# Edits of JSON files as text.

# usage: insertOrReplaceJsonParam FILE NAME VALUE
# Sets one string member of an object; creates a missing or empty file.
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
