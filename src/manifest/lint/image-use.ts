/** Compares the images that an add-on's files name with those that its Manifest lists. Pure. */
import { formatImageRef, parseImageRef, type ImageRef } from '../../core/image-ref.ts';
import type { Request } from '../directives.ts';
import type { ImageRequest } from '../directives/image.ts';
import { finding, quoted, type Find } from '../rules.ts';
import type { Placer, Spot } from './spot.ts';
import type { ImageRewrite, ImageUse } from './yaml-images.ts';

/** What one file names. */
export interface FileImages {
  readonly place: Placer;
  readonly uses: readonly ImageUse[];
  readonly rewrites: readonly ImageRewrite[];
}

interface Listed {
  readonly request: ImageRequest;
  readonly ref: ImageRef;
}

function listedImages(requests: readonly Request[]): readonly Listed[] {
  return requests.flatMap((request): readonly Listed[] => {
    if (request.kind !== 'image' || request.reference === undefined) return [];
    const ref = refOf(request.reference);
    return ref === undefined ? [] : [{ request, ref }];
  });
}

/** Registry and repository. */
function nameOf({ registry, repository }: ImageRef): string {
  return `${registry}/${repository}`;
}

/** Whether a node with an image of the same name finds `used` without a registry: by digest if it has one, or by tag. */
function answers(listed: ImageRef, used: ImageRef): boolean {
  return used.digest === undefined ? listed.tag === used.tag : listed.digest === used.digest;
}

interface Wanted {
  readonly ref: ImageRef;
  readonly sure: boolean;
  readonly place: Placer;
  readonly spot: Spot;
}

function refOf(text: string): ImageRef | undefined {
  const ref = parseImageRef(text);
  return typeof ref === 'string' ? undefined : ref;
}

/** The images of all files, as kustomizations leave them. */
function wantedImages(files: readonly FileImages[]): readonly Wanted[] {
  const rewrites = files.flatMap((file) => file.rewrites.map((one) => ({ ...one, place: file.place })));
  const byName = new Map(
    rewrites.flatMap((one) => {
      const ref = refOf(one.name);
      return ref === undefined ? [] : [[nameOf(ref), one] as const];
    }),
  );
  const wanted: Wanted[] = [];
  for (const { place, uses } of files) {
    for (const use of uses) {
      const ref = refOf(use.text);
      if (ref === undefined) continue;
      const rewrite = byName.get(nameOf(ref));
      // One that is renamed completely is judged below, where the new name stands.
      if (rewrite?.suffix !== undefined) continue;
      const renamed = rewrite === undefined ? undefined : refOf(rewrite.newName ?? '');
      const { registry, repository } = renamed ?? ref;
      wanted.push({ ref: { ...ref, registry, repository }, sure: use.sure, place, spot: use });
    }
  }
  for (const { name, newName, suffix, place, from, to } of rewrites) {
    const ref = suffix === undefined ? undefined : refOf(`${newName ?? name}${suffix}`);
    if (ref !== undefined) wanted.push({ ref, sure: true, place, spot: { from, to } });
  }
  return wanted;
}

/** Of images that are missing; nobody reads more. */
const MOST_TOLD = 1000;

/** Images that files name and the Manifest lacks. One finding for each image, where it stands first. */
export function checkListed(requests: readonly Request[], files: readonly FileImages[], find: Find): void {
  const listed = new Map<string, Listed[]>();
  for (const one of listedImages(requests)) {
    const same = listed.get(nameOf(one.ref));
    if (same === undefined) listed.set(nameOf(one.ref), [one]);
    else same.push(one);
  }
  const told = new Set<string>();
  for (const { ref, sure, place, spot } of wantedImages(files).toSorted((a, b) => Number(b.sure) - Number(a.sure))) {
    const shown = formatImageRef(ref);
    const same = listed.get(nameOf(ref)) ?? [];
    if (told.has(shown) || same.some((one) => answers(one.ref, ref))) continue;
    told.add(shown);
    if (told.size > MOST_TOLD) return;
    const [near] = same;
    const hint =
      near === undefined ? `image <id> ${shown}` : `line ${near.request.place.line} lists ${near.request.source.text}`;
    const message = `the image ${quoted(shown)} is missing from the Manifest`;
    find(finding(sure ? 'image/not-listed' : 'image/not-listed-value', place.at(spot), message, hint));
  }
}

/** Each is looked for in every text: a Manifest with more than this is none of an add-on, and not judged by this rule. */
const MOST_LISTED = 500;

/** Strikes out the images of a Manifest that files name; what is left over is unused. */
export interface UnusedImages {
  readonly read: (text: () => string, named: Pick<FileImages, 'uses' | 'rewrites'>) => void;
  readonly left: () => readonly ImageRequest[];
}

export function watchUnused(requests: readonly Request[]): UnusedImages {
  const listed = listedImages(requests);
  let left = (listed.length > MOST_LISTED ? [] : listed).map(({ request, ref }) => ({
    request,
    // Without the registry and `library/`, which may be written elsewhere or not at all.
    name: ref.repository.replace(/^library\//, ''),
  }));
  return {
    read(text, { uses, rewrites }) {
      // What was understood as an image is asked first: it is short, and a file can have megabytes.
      const images = [...uses.map((use) => use.text), ...rewrites.map((one) => one.name)];
      left = left.filter(({ name }) => !images.some((image) => image.includes(name)));
      if (left.length > 0) left = left.filter(({ name }) => !text().includes(name));
    },
    left: () => left.map(({ request }) => request),
  };
}

/** Where files name no image at all, there is nothing to go by. */
export function checkUnused({ left }: UnusedImages, files: readonly FileImages[], find: Find): void {
  if (files.every(({ uses, rewrites }) => uses.length + rewrites.length === 0)) return;
  for (const { source } of left()) {
    const message = `no other file of the add-on names the image ${quoted(source.text)}`;
    find(finding('image/unused', source.place, message, 'what nobody starts need not be packed'));
  }
}
