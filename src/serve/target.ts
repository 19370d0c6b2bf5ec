/** The target of a request as words, or nothing when it is odd: what passes here can be part of a key. Pure. */

export interface Target {
  /** Never empty, none is a folder reference. `/` has none. */
  readonly segments: readonly string[];
  /** The path ends in a slash. */
  readonly folder: boolean;
  readonly query: URLSearchParams;
}

/** All that names of add-ons, versions, releases, images and digests are made of. */
const SEGMENT = /^[A-Za-z0-9._+,:~_-]{1,300}$/;
const MOST_SEGMENTS = 32;

/**
 * Undefined for a path with an empty segment, a folder reference, or a character that no name here has, however it is
 * written. Names are decoded once.
 */
export function parseTarget(text: string): Target | undefined {
  if (!text.startsWith('/') || text.includes('#')) return undefined;
  const question = text.indexOf('?');
  const path = question === -1 ? text : text.slice(0, question);
  const query = new URLSearchParams(question === -1 ? '' : text.slice(question + 1));
  if (path === '/') return { segments: [], folder: true, query };
  const folder = path.endsWith('/');
  const segments: string[] = [];
  for (const written of path.slice(1, folder ? -1 : undefined).split('/', MOST_SEGMENTS + 1)) {
    const segment = decoded(written);
    if (segment === undefined || !SEGMENT.test(segment) || /^\.+$/.test(segment)) return undefined;
    segments.push(segment);
  }
  return segments.length > MOST_SEGMENTS ? undefined : { segments, folder, query };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
