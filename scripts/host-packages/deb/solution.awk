# What `apt-get install --simulate` would install: name, version, architecture. From lines such as
# `Inst name [1.0] (1:2.0-1 Label:suite [amd64])`.
$1 == "Inst" {
  name = $2
  sub(/:.*/, "", name)
  if (!match($0, /\([^ ]+ /)) exit 1
  version = substr($0, RSTART + 1, RLENGTH - 2)
  if (!match($0, /\[[a-z0-9-]+\]\)/)) exit 1
  printf "%s\t%s\t%s\n", name, version, substr($0, RSTART + 1, RLENGTH - 3)
}
