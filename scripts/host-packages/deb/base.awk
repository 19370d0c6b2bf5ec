# Which packages a bare system of this kind has. Reads the index by lines (for the names that are real packages), then
# the stanzas of those known to be there; prints their names, and those that they cannot do without. Of alternatives
# none is taken: which one a system has, nobody knows. To be run until nothing comes of it any more.
RS != "" {
  real[$1] = 1
  next
}
{
  stanza()
  if (!is_sound()) next
  here[value["Package"]] = 1
  print value["Package"]
  count = split(value["Provides"], list, ",")
  for (i = 1; i <= count; i++) here[bare(list[i])] = 1
  count = split(value["Pre-Depends"] "," value["Depends"], list, ",")
  for (i = 1; i <= count; i++) if (list[i] != "" && list[i] !~ /\|/) needed[bare(list[i])] = 1
}
END { for (name in needed) if (name in real && !(name in here)) print name }
