# The stanzas of the packages of a table, in its order, as those of an index beside the files. The table (name, version,
# architecture, sha256, repository, file) is read by lines, before the indexes.

function line(text, file) {
  # Whether such an update is taken would depend on the machine.
  if (text ~ /^Phased-Update-Percentage:/) return ""
  return (text ~ /^Filename:/ ? "Filename: ./" file : text) "\n"
}

RS != "" {
  split($0, part, "\t")
  order[++count] = part[1] "\t" part[2] "\t" part[3]
  row[order[count]] = $0
  next
}
{
  stanza()
  key = identity()
  if (!(key in row) || key in shown) next
  split(row[key], part, "\t")
  if (part[4] != value["SHA256"]) next
  shown[key] = ""
  for (i = 1; i <= NF; i++) shown[key] = shown[key] line($i, part[6])
}
END { for (i = 1; i <= count; i++) if (order[i] in shown) printf "%s\n", shown[order[i]] }
