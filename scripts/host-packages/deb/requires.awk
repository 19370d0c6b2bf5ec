# Names that the packages of a table (read by lines, before the indexes) depend on and that none of them is or
# provides; of alternatives the first.
RS != "" {
  split($0, part, "\t")
  row[part[1] "\t" part[2] "\t" part[3]] = 1
  here[part[1]] = 1
  next
}
{
  stanza()
  if (!(identity() in row)) next
  count = split(value["Provides"], list, ",")
  for (i = 1; i <= count; i++) here[bare(list[i])] = 1
  count = split(value["Pre-Depends"] "," value["Depends"], list, ",")
  for (i = 1; i <= count; i++) if (list[i] != "") groups[list[i]] = 1
}
END {
  for (group in groups) {
    count = split(group, list, "|")
    met = 0
    for (i = 1; i <= count; i++) if (bare(list[i]) in here) met = 1
    if (!met) print bare(list[1])
  }
}
