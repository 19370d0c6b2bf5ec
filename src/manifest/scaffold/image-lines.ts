/** The image lines of a new Manifest. Pure. */
import { formatImageRef, type ImageRef, parseImageRef } from '../../core/image-ref.ts';
import { compareText } from '../../core/ref.ts';

interface Named {
  readonly text: string;
  readonly short: string;
  readonly long: string;
  readonly mark: string;
}

function named(text: string, { repository, tag, digest }: ImageRef): Named {
  const parts = repository.split('/');
  const short = parts.at(-1) ?? repository;
  const written = /:[^/@]+(?:@|$)/.test(text) ? tag : undefined;
  return { text, short, long: parts.slice(-2).join('-'), mark: written ?? digest?.slice(7, 19) ?? '' };
}

function countOf(texts: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/**
 * One line per image, sorted by reference; merges spellings of the same image. The id is the last part of its name, prefixed
 * with the part before it if ids would be equal, and suffixed with the tag if that is not enough. Skips invalid references.
 */
export function imageLines(references: readonly string[]): readonly string[] {
  const images = new Map<string, Named>();
  for (const text of [...new Set(references)].toSorted(compareText)) {
    const ref = parseImageRef(text);
    if (typeof ref === 'string' || images.has(formatImageRef(ref))) continue;
    images.set(formatImageRef(ref), named(text, ref));
  }
  const all = [...images.values()];
  const short = countOf(all.map((one) => one.short));
  const distinct = (one: Named): string => ((short.get(one.short) ?? 0) > 1 ? one.long : one.short);
  const again = countOf(all.map(distinct));
  const used = new Set<string>();
  return all.map((one) => {
    let id = distinct(one);
    if ((again.get(id) ?? 0) > 1) id = `${id}-${one.mark}`;
    while (used.has(id)) id = `${id}-2`;
    used.add(id);
    return `image ${id} ${one.text}`;
  });
}
