/** Tells documents that define kinds of resources, which are generated and can have megabytes. Pure. */

const KIND = /\n?kind:[ \t]*["']?CustomResourceDefinition\b/y;

/** Looks only where a line begins with `kind:`: an expression over all of a large definition takes much longer. */
export function isDefinition(document: string): boolean {
  for (let at = 0; at !== -1; at = document.indexOf('\nkind:', at + 1)) {
    KIND.lastIndex = at;
    if (KIND.test(document)) return true;
  }
  return false;
}
