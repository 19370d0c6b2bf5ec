/** Package URLs (ECMA-427, github.com/package-url/purl-spec): names of software that scanners know. Pure. */

export interface PurlParts {
  readonly type: 'deb' | 'generic' | 'oci' | 'rpm';
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly version?: string | undefined;
  /** Those without a value are left out. */
  readonly qualifiers: Readonly<Record<string, string | undefined>>;
}

/** The canonical text: whatever the parts hold, each stays within its place. */
export function formatPurl({ type, namespace, name, version, qualifiers }: PurlParts): string {
  const pairs = Object.entries(qualifiers).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [`${key}=${encoded(value)}`],
  );
  return [
    `pkg:${type}/`,
    namespace === undefined ? '' : `${encoded(namespace)}/`,
    encoded(type === 'rpm' || type === 'generic' ? name : name.toLowerCase()),
    version === undefined || version === '' ? '' : `@${encoded(version)}`,
    pairs.length === 0 ? '' : `?${pairs.toSorted().join('&')}`,
  ].join('');
}

/** Everything but letters, digits, `.`, `-`, `_`, `~` and the colon, as bytes of UTF-8. */
function encoded(text: string): string {
  // encodeURIComponent throws for halves of characters, which JSON from outside may hold.
  const whole = Buffer.from(text).toString();
  return encodeURIComponent(whole)
    .replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%3A', ':');
}
