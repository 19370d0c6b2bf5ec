/** A file as sections that are verified one by one, each as soon as all its bytes have arrived. */
import { digestOfAll } from '../../formats/archive/digest-all.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { headerSize, paddingSize } from '../../formats/archive/place.ts';
import { verifyEntry } from '../../formats/archive/verify.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Range } from './ranges.ts';

export interface Section extends Range {
  /** Throws a CurlewError if the bytes of the section in the file are wrong. */
  readonly verify: (file: RangeSource, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** The section is header, payload and padding of this entry; undefined if it is the whole file. */
  readonly entry?: PlacedEntry | undefined;
}

/**
 * One section for each entry of an archive, in order, with its header and padding. The TOC alone shows whether they tile the
 * file up to the TOC; if they do not, the archive is `PACKAGE_INVALID`.
 */
export function archiveSections(index: ArchiveIndex, name: string): readonly Section[] {
  let at = 0;
  const sections = index.entries.map((entry): Section => {
    const offset = at;
    const payloadAt = offset + headerSize(entry);
    if (entry.packed > 0 && entry.offset !== payloadAt) throw untiled(name, entry.path);
    at = payloadAt + entry.packed + (entry.packed > 0 ? paddingSize(entry.size) : 0);
    return {
      offset,
      end: at,
      entry,
      verify: async (file, options) => {
        await verifyEntry(file, offset, entry, options);
      },
    };
  });
  if (at !== index.tocOffset) throw untiled(name, 'the end');
  return sections;
}

function untiled(name: string, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${path}: some bytes belong to no entry`, {
    hint: 'the file was altered: fetch it from another place, or build it again',
  });
}

/** The section of a file that is not an archive; without a digest, any bytes are right. */
export function wholeSection(size: number, digest: Digest | undefined): Section {
  return {
    offset: 0,
    end: size,
    verify: async (file, { signal }) => {
      if (digest === undefined || (await digestOfAll(file, { signal })) === digest) return;
      throw new CurlewError('DIGEST_MISMATCH', `${file.name}: the digest does not match`);
    },
  };
}

/** The sections that overlap a range. */
export function* sectionsIn(sections: readonly Section[], { offset, end }: Range): Generator<Section, void, undefined> {
  let low = 0;
  let high = sections.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sections[middle]?.end ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < sections.length; at += 1) {
    const section = sections[at];
    if (section === undefined || section.offset >= end) return;
    yield section;
  }
}
