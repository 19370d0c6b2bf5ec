# Functions for files in the form of deb822(5), read with RS empty and FS a newline: one stanza at a time.

# Sets value[] to the fields of the stanza, without the lines that go on.
function stanza(   i, colon, key) {
  split("", value)
  for (i = 1; i <= NF; i++) {
    colon = index($i, ":")
    if (colon < 2 || substr($i, 1, 1) == " ") continue
    key = substr($i, 1, colon - 1)
    value[key] = substr($i, colon + 1)
    sub(/^[ \t]+/, "", value[key])
  }
}

# True for a package whose name, version and architecture are what those of packages are. An index may say anything, and the
# name becomes a word of a command.
function is_sound() {
  if (value["Package"] !~ /^[A-Za-z0-9][A-Za-z0-9+.-]*$/) return 0
  return value["Version"] ~ /^[A-Za-z0-9.+:~-]+$/ && value["Architecture"] ~ /^[a-z0-9-]+$/
}

function identity() { return value["Package"] "\t" value["Version"] "\t" value["Architecture"] }

# A name out of a list of relations, without version, architecture and restrictions.
function bare(text) {
  sub(/^[ \t]+/, "", text)
  sub(/[ \t:([].*/, "", text)
  return text
}
