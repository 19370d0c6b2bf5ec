# The reason of apt-get's resolver out of what it printed, in a few lines "conflict" and text.
/have unmet dependencies|Unable to satisfy/ { inside = 1 }
inside && /^ / && ++shown <= 8 {
  sub(/^ +/, "")
  gsub(/\t/, " ")
  printf "conflict\t%s\n", $0
}
/^E: / && !/held broken packages/ && ++errors <= 4 { printf "conflict\t%s\n", substr($0, 4) }
END { if (!shown && !errors) print "conflict\tthere is no solution" }
