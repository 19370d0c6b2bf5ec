/** What a container runtime lacks of the images that packages want. */
import { mapLimited } from '../../platform/limit/each.ts';
import type { ImageRuntime, KnownName } from './image-runtime.ts';
import type { Cancellable } from './archive.ts';
import type { WantedImage } from './wanted.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';

/** A second name that is to be given. */
export interface Alias {
  readonly of: string;
  readonly alias: string;
}

export interface Lacking {
  /** Those that a name is missing of, stands for another image, or whose layers are not unpacked. */
  readonly images: ReadonlySet<WantedImage>;
  /** Those that nothing has yet; an alias that stands for something is left alone. */
  readonly aliases: readonly Alias[];
}

const FORMS_AT_ONCE = 4;

/** Asks once for all images. */
export async function findLacking(
  runtime: ImageRuntime,
  images: readonly WantedImage[],
  { signal }: Cancellable,
): Promise<Lacking> {
  if (images.length === 0) return { images: new Set(), aliases: [] };
  const rows = await mapLimited(
    images,
    async (image, within) => ({ image, names: await runtime.namesOf(image, within) }),
    { width: FORMS_AT_ONCE, signal },
  );
  const own = new Set(rows.flatMap(({ names }) => names));
  const aliases = rows
    .flatMap(({ names }) => names.flatMap((of) => aliasesOf(of).map((alias) => ({ of, alias }))))
    .filter(({ alias }) => !own.has(alias));
  const known = await runtime.survey([...own, ...aliases.map(({ alias }) => alias)], { signal });
  const lacking = await mapLimited(
    rows,
    async ({ image, names }, within) =>
      (await problemOf(runtime, image, { names, known, whole: false, ...within })) === undefined ? [] : [image],
    { width: FORMS_AT_ONCE, signal },
  );
  return { images: new Set(lacking.flat()), aliases: aliases.filter(({ alias }) => !known.has(alias)) };
}

/** Why an image is not there as it should be. */
interface Problem {
  readonly kind: 'missing' | 'not unpacked' | 'not whole' | 'another';
  readonly text: string;
}

interface Sight extends Cancellable {
  readonly names: readonly string[];
  readonly known: ReadonlyMap<string, KnownName>;
  /** The blobs of its layers count as well. */
  readonly whole: boolean;
}

/** The first thing that is wrong with an image on this node; undefined when containers can be made of it. */
export async function problemOf(
  runtime: ImageRuntime,
  image: WantedImage,
  { names, known, whole, signal }: Sight,
): Promise<Problem | undefined> {
  for (const name of names) {
    const found = known.get(name);
    if (found === undefined) return { kind: 'missing', text: `${name} is missing` };
    if (!(await runtime.isImage(found, image, { signal }))) {
      const wanted = image.digest === undefined ? '' : `, not ${image.digest}`;
      return { kind: 'another', text: `${name} is ${found.id}${wanted}` };
    }
    if (!found.ready) return { kind: 'not unpacked', text: `${name} is not unpacked` };
    if (whole && !found.whole) return { kind: 'not whole', text: `blobs of ${name} are missing` };
  }
  return undefined;
}

const OLD = 'k8s.gcr.io';
const NEW = 'registry.k8s.io';

/** Names under which an image of this normalised name is looked for as well; none for most images. */
export function aliasesOf(name: string): readonly string[] {
  const ref = parseImageRef(name);
  if (typeof ref === 'string' || (ref.registry !== OLD && ref.registry !== NEW)) return [];
  const moved = { ...ref, registry: ref.registry === OLD ? NEW : OLD };
  // kubeadm looks for coredns without its folder when the registry is not the default one.
  const isCoredns = ref.tag !== undefined && ref.repository.includes('coredns');
  const short = isCoredns ? [{ ...ref, registry: NEW, repository: 'coredns' }] : [];
  return [...new Set([moved, ...short].map(formatImageRef))].filter((alias) => alias !== name);
}
