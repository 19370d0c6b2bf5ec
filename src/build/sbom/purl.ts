/** Package URLs (ECMA-427, github.com/package-url/purl-spec): standard names of software for scanners. Pure. */

export interface PurlParts {
  readonly type: 'deb' | 'generic' | 'oci' | 'rpm';
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly version?: string | undefined;
  /** Omits those without a value. */
  readonly qualifiers: Readonly<Record<string, string | undefined>>;
}

/** The canonical text, with every part encoded. */
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

/** Percent-encodes everything but letters, digits, `.`, `-`, `_`, `~` and the colon. */
function encoded(text: string): string {
  // encodeURIComponent throws for lone surrogates, which JSON from outside may contain.
  const whole = Buffer.from(text).toString();
  return encodeURIComponent(whole)
    .replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%3A', ':');
}
