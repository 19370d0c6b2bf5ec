# Joins a solution (first file: name, version, architecture) with the index (second file): adds sha256, repository and
# the file's name. Of two packages of one name and version the first counts, as it does for apt. Status 1 when one is
# not there, or not as it should be.
BEGIN { FS = "\t" }
FNR == NR { wanted[$1 "\t" $2 "\t" $3] = 1; next }
{
  row = $1 "\t" $2 "\t" $3
  if (!(row in wanted)) next
  delete wanted[row]
  if ($1 !~ /^[a-z0-9][a-z0-9+.-]*$/ || $2 !~ /^[A-Za-z0-9.+:~-]+$/ || $3 !~ /^[a-z0-9-]+$/ || $4 !~ /^[0-9a-f]+$/) {
    failed = 1
    exit
  }
  version = $2
  # Without the epoch: neither a colon nor what apt writes for it may stand in a name that every reader takes.
  sub(/^[0-9]+:/, "", version)
  printf "%s\t%s\t%s\t%s_%s_%s.deb\n", row, $4, $5, $1, version, $3
}
END {
  for (row in wanted) failed = 1
  exit failed
}
