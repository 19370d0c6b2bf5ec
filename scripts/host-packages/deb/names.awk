# Names (first file, one a line) that no package of the index (second file) has or provides: a line "missing" and
# the name, and for each name that is like it "near", the name, the other, and how much they share. Status 1 if any.

# The pairs of letters of a word.
function pairs(word, set,   i, count) {
  split("", set)
  word = "^" word "$"
  for (i = 1; i < length(word); i++) {
    if (substr(word, i, 2) in set) continue
    set[substr(word, i, 2)] = 1
    count++
  }
  return count
}

BEGIN { FS = "\t" }
FNR == NR { wanted[$1] = 1; next }
{
  known[$1] = 1
  count = split($7, provided, ",")
  for (i = 1; i <= count; i++) known[bare(provided[i])] = 1
}
END {
  for (name in wanted) {
    if (name in known) continue
    failed = 1
    printf "missing\t%s\n", name
    size = pairs(name, own)
    for (candidate in known) {
      other = pairs(candidate, its)
      common = 0
      for (pair in its) if (pair in own) common++
      score = 2 * common / (size + other)
      if (score >= 0.5) printf "near\t%s\t%s\t%.4f\n", name, candidate, score
    }
  }
  exit failed
}
