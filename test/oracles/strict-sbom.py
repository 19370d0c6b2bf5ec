"""Checks documents against the strict schema of CycloneDX 1.6: one line per file. usage: strict-sbom.py FILE..."""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

validator = JsonStrictValidator(SchemaVersion.V1_6)
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        error = validator.validate_str(file.read())
    print("valid" if error is None else f"{path}: {error}")
