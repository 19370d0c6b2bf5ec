#!/usr/bin/env python3
"""read-bundle.py FILE lists and verifies all entries; read-bundle.py FILE ENTRY writes one to standard output."""
import hashlib, json, os, re, sys, zlib
PROPER = re.compile(r"(?!.*(^|/)\.{0,2}(/|$))[^\\\0-\x1f\x7f]{1,1024}")
FOOTER = re.compile(rb"\x1f\x8b\x08\x04\0{5}\xff\x1a\0SG\x16\0([0-9a-f]{16})STARGZ\x01\0\0\xff\xff\0{8}")
sys.excepthook = lambda _kind, error, _trace: print(*sys.argv[1:] or [__doc__], repr(error), file=sys.stderr)
def need(good, problem):
    if not good: raise ValueError(problem)
def unpack(file, offset, packed, most, name):  # one gzip member, in pieces; zlib checks its CRC and length
    inflate = zlib.decompressobj(31)
    file.seek(offset)
    for at in range(0, packed, 1 << 16):
        most -= len(piece := inflate.decompress(file.read(min(1 << 16, packed - at)), most + 1))
        yield need(most >= 0, f"{name}: larger than its size") or piece
    need(inflate.eof and not inflate.unused_data, f"{name}: not one whole gzip member")
def read_index(file):  # the footer leads to the table of contents; a hard link gets the place of its target
    end = max(51, file.seek(0, os.SEEK_END)) - 51
    file.seek(end)
    found = FOOTER.fullmatch(file.read())
    offset = int(found[1], 16) if found else end
    need(offset < end and end - offset < 1 << 29, "no footer, or one that points beyond the end")
    tar, entries, last = b"".join(unpack(file, offset, end - offset, end - offset, "table of contents")), {}, 0
    text = tar[512 : 512 + int(tar[124:136].rstrip(b"\0"), 8)]
    for entry in json.loads(text)["entries"]:
        name, start, target = entry["name"], entry.get("offset", last), entries.get(entry.get("linkName"), {})
        need(PROPER.fullmatch(name) and name not in entries and last <= start <= offset, f"{name!r}: no proper entry")
        need((target or entry)["type"] == "reg" and {**entry, **target}["digest"] == entry["digest"], f"{name}: link")
        last, entries[name] = start + entry.get("packed", 0), {**target, **entry}
    return entries, f"contents sha256:{hashlib.sha256(text).hexdigest()}"
def read_entry(file, entry, write):  # use what was written only when this has come back: the digest comes last
    hashed, left = hashlib.sha256(), entry["size"]
    for piece in unpack(file, entry["offset"], entry["packed"], left, entry["name"]) if left else ():
        left -= len(piece)
        hashed.update(piece), write(piece)
    need(left == 0 and entry["digest"] == f"sha256:{hashed.hexdigest()}", f"{entry['name']}: damaged")
    return f"{entry['mode']:04o} {entry['size']:12} {entry['digest']} {entry['name']}"
with open(sys.argv[1], "rb") as source:
    index, contents = read_index(source)
    if sys.argv[2:]: read_entry(source, index[sys.argv[2]], sys.stdout.buffer.write)
    else: print(*(read_entry(source, entry, len) for entry in index.values()), contents, sep="\n")
