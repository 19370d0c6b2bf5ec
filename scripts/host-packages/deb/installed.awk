# Stanzas of an index (second file) as those of installed packages, but for the names of the first file. What they
# depend on is left out: they are there, and that is all that the resolver has to know.
FNR == NR { named[$1] = 1; next }
/^Package:/ { skip = $2 in named }
!NF { out = 0 }
/^[^ ]/ { out = /^(Filename|Size|MD5sum|SHA1|SHA256|SHA512|Description-md5|Pre-Depends|Depends|Recommends|Suggests):/ }
skip { next }
!out { print }
/^Package:/ { print "Status: install ok installed" }
