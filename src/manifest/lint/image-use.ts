/** Compares the images that an add-on's files name with those that its Manifest lists. Pure. */
import { formatImageRef, parseImageRef, type ImageRef } from '../../core/image-ref.ts';
import type { FetchedSource } from '../directives.ts';
import type { ImageRequest } from '../directives/image.ts';
import { quoted, type Find } from '../rules.ts';
import type { Placer, Spot } from './spot.ts';
import type { ImageRewrite, ImageUse } from './yaml-images.ts';

/** The images that a file names. */
export interface FileImages {
  readonly place: Placer;
  readonly uses: readonly ImageUse[];
  readonly rewrites: readonly ImageRewrite[];
}

interface Listed {
  readonly request: ImageRequest;
  readonly ref: ImageRef;
}

/** The names of the images in archives, by the path in the Manifest. An archive that cannot be read is missing. */
export type ArchiveNames = ReadonlyMap<string, readonly string[]>;

function archivedImages(requests: readonly FetchedSource[], archives: ArchiveNames): readonly Listed[] {
  return requests.flatMap((request) => {
    if (request.kind !== 'image' || request.ref !== undefined) return [];
    const names = archives.get(request.archive ?? '');
    return (names ?? []).flatMap((name): readonly Listed[] => {
      const ref = refOf(name);
      return ref === undefined ? [] : [{ request, ref }];
    });
  });
}

function listedImages(requests: readonly FetchedSource[]): readonly Listed[] {
  return requests.flatMap((request): readonly Listed[] =>
    request.kind === 'image' && request.ref !== undefined ? [{ request, ref: request.ref }] : [],
  );
}

/** Registry and repository of an image. */
function nameOf({ registry, repository }: ImageRef): string {
  return `${registry}/${repository}`;
}

/** Whether a node with the `listed` image finds `used` without a registry, by digest if it has one, or by tag. */
function satisfies(listed: ImageRef, used: ImageRef): boolean {
  return used.digest === undefined ? listed.tag === used.tag : listed.digest === used.digest;
}

interface UsedImage {
  readonly ref: ImageRef;
  readonly sure: boolean;
  readonly place: Placer;
  readonly spot: Spot;
}

function refOf(text: string): ImageRef | undefined {
  const ref = parseImageRef(text);
  return typeof ref === 'string' ? undefined : ref;
}

/** The images of all files, after kustomizations. */
function usedImages(files: readonly FileImages[]): readonly UsedImage[] {
  const rewrites = files.flatMap((file) => file.rewrites.map((one) => ({ ...one, place: file.place })));
  const byName = new Map(
    rewrites.flatMap((one) => {
      const ref = refOf(one.name);
      return ref === undefined ? [] : [[nameOf(ref), one] as const];
    }),
  );
  const used: UsedImage[] = [];
  for (const { place, uses } of files) {
    for (const use of uses) {
      const ref = refOf(use.text);
      if (ref === undefined) continue;
      const rewrite = byName.get(nameOf(ref));
      // A completely renamed image is handled below, at its new name.
      if (rewrite?.suffix !== undefined) continue;
      const renamed = rewrite === undefined ? undefined : refOf(rewrite.newName ?? '');
      const { registry, repository } = renamed ?? ref;
      used.push({ ref: { ...ref, registry, repository }, sure: use.sure, place, spot: use });
    }
  }
  for (const { name, newName, suffix, place, from, to } of rewrites) {
    const ref = suffix === undefined ? undefined : refOf(`${newName ?? name}${suffix}`);
    if (ref !== undefined) used.push({ ref, sure: true, place, spot: { from, to } });
  }
  return used;
}

function hintOf({ request: { place, source, archive }, ref }: Listed): string {
  const lists = `line ${place.line} lists ${source.text}`;
  return archive === undefined ? lists : `${lists}, which contains ${formatImageRef(ref)}`;
}

/** Limit of reported missing images. */
const MAX_REPORTED = 1000;

/** Reports images that files name and that are missing from the Manifest, each once, at its first place. */
export function checkListed(
  requests: readonly FetchedSource[],
  { files, archives }: { readonly files: readonly FileImages[]; readonly archives: ArchiveNames },
  find: Find,
): void {
  const listed = new Map<string, Listed[]>();
  for (const one of [...listedImages(requests), ...archivedImages(requests, archives)]) {
    const same = listed.get(nameOf(one.ref));
    if (same === undefined) listed.set(nameOf(one.ref), [one]);
    else same.push(one);
  }
  const reported = new Set<string>();
  for (const { ref, sure, place, spot } of usedImages(files).toSorted((a, b) => Number(b.sure) - Number(a.sure))) {
    const shown = formatImageRef(ref);
    const same = listed.get(nameOf(ref)) ?? [];
    if (reported.has(shown) || same.some((one) => satisfies(one.ref, ref))) continue;
    reported.add(shown);
    if (reported.size > MAX_REPORTED) return;
    const [near] = same;
    const hint = near === undefined ? `image <id> ${shown}` : hintOf(near);
    const message = `the image ${quoted(shown)} is missing from the Manifest`;
    find(sure ? 'image/not-listed' : 'image/not-listed-value', place.at(spot), message, hint);
  }
}

/** Each image is searched in every text, so this rule skips Manifests with more images, which no add-on has. */
const MAX_LISTED = 500;

/** Collects the images of a Manifest that no file names. */
export interface UnusedImages {
  readonly read: (text: () => string, named: Pick<FileImages, 'uses' | 'rewrites'>) => void;
  readonly unused: () => readonly ImageRequest[];
}

export function watchUnused(requests: readonly FetchedSource[]): UnusedImages {
  const listed = listedImages(requests).filter(({ request }) => request.archive === undefined);
  let unused = (listed.length > MAX_LISTED ? [] : listed).map(({ request, ref }) => ({
    request,
    // Without the registry and `library/`, which may be elsewhere or omitted.
    name: ref.repository.replace(/^library\//, ''),
  }));
  return {
    read(text, { uses, rewrites }) {
      // Searches the recognized images first: they are short, and a file can be megabytes.
      const images = [...uses.map((use) => use.text), ...rewrites.map((one) => one.name)];
      unused = unused.filter(({ name }) => !images.some((image) => image.includes(name)));
      if (unused.length > 0) unused = unused.filter(({ name }) => !text().includes(name));
    },
    unused: () => unused.map(({ request }) => request),
  };
}

/** Reports nothing if no file names an image: then the use of images is unknown. */
export function checkUnused({ unused }: UnusedImages, files: readonly FileImages[], find: Find): void {
  if (files.every(({ uses, rewrites }) => uses.length + rewrites.length === 0)) return;
  for (const { source } of unused()) {
    const message = `no other file of the add-on names the image ${quoted(source.text)}`;
    find('image/unused', source.place, message, 'remove it if no container uses it');
  }
}
