# What apt-get says of repositories: lines of a kind (signature, changed, untimely, repository, full), a URL or path, a text.
# Status 1 when it says nothing. The variable state names the folder that files were written to.

function put(kind, url, text) {
  sub(/:$/, "", url)
  if ((kind, url) in seen) return
  seen[kind, url] = seen[kind] = found = 1
  gsub(/\t/, " ", text)
  printf "%s\t%s\t%s\n", kind, url, text
}

# The line from a word on.
function from(word,   text) {
  text = $0
  while (--word > 0) sub(/^[^ ]+ +/, "", text)
  return text
}

/No space left on device|enough free space/ { put("full", state, $0); next }
# SIGXFSZ: the limit of deb_update.
/received signal 25/ { put("repository", "-", "one of its indexes unpacks to more than 2 GB") }
/^[EW]: GPG error: / { put("signature", $4, from(5)); next }
/^[EW]: Failed to fetch / {
  if (/BADSIG|NO_PUBKEY|EXPKEYSIG|REVKEYSIG|GPG error|not signed|NOSPLIT/) put("signature", $5, from(6))
  else if (/[Mm]ismatch|unexpected size/) put("changed", $5, from(6))
  else put("repository", $5, from(6))
  next
}
/^E: The repository / {
  if (/not signed/ && !("signature" in seen)) put("signature", substr($4, 2), "it is not signed")
  if (/have a Release file/ && !("repository" in seen)) put("repository", substr($4, 2), "it has no Release file")
  next
}
/^E: Release file for .* is (expired|not valid yet)/ { put("untimely", $5, from(6)); next }
/^E: Release file for / { put("repository", $5, from(6)); next }
/^E: / && !/index files failed|Unable to fetch some archives|Aborting install/ { last = substr($0, 4) }
END {
  if (!found && last != "") put("repository", "-", last)
  exit found ? 0 : 1
}
