"""Lists a package with Python's tarfile: one JSON object a regular file (name, mode, size, sha256, mtime, uid, gid,
owner). usage: list.py PACKAGE; a repeated payload (a hard link) is listed with the content that it points to."""

import hashlib
import json
import sys
import tarfile

with tarfile.open(sys.argv[1], "r:gz") as archive:
    for member in archive:
        if member.isdir():
            continue
        content = archive.extractfile(member)
        if content is None:
            sys.exit(f"list.py: {member.name}: type {member.type!r} is no file")
        data = content.read()
        row = {"name": member.name, "mode": member.mode & 0o7777, "size": len(data)}
        row["sha256"] = hashlib.sha256(data).hexdigest()
        row["mtime"] = member.mtime
        row["uid"] = member.uid
        row["gid"] = member.gid
        row["owner"] = f"{member.uname}:{member.gname}"
        print(json.dumps(row))
