/** Detects documents that define resource kinds, which are generated and can be megabytes. Pure. */

const KIND = /\n?kind:[ \t]*["']?CustomResourceDefinition\b/y;

/** Checks only lines that begin with `kind:`: a regular expression over a whole large definition is much slower. */
export function isDefinition(document: string): boolean {
  for (let at = 0; at !== -1; at = document.indexOf('\nkind:', at + 1)) {
    KIND.lastIndex = at;
    if (KIND.test(document)) return true;
  }
  return false;
}
