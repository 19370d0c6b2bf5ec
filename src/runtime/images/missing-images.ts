/** The images of packages that a container runtime does not have. */
import { mapLimited } from '../../platform/limit/each.ts';
import { createFailures } from './failed-images.ts';
import type { ImageRuntime, KnownName } from './image-runtime.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import type { RequiredImage } from './required-images.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';

/** A second name to give to an image. */
export interface Alias {
  readonly of: string;
  readonly alias: string;
}

export interface MissingImages {
  /** Images without one of their names, with a name that refers to another image, or whose layers are not unpacked. */
  readonly images: ReadonlySet<RequiredImage>;
  /** Aliases that do not exist; existing ones are not changed. */
  readonly aliases: readonly Alias[];
  /** Names that the runtime has, whatever they refer to. */
  readonly listed: ReadonlySet<string>;
}

const FORMS_AT_ONCE = 4;

/** Queries the runtime once for all images. */
export async function findMissing(
  runtime: ImageRuntime,
  images: readonly RequiredImage[],
  { signal }: Cancellable,
): Promise<MissingImages> {
  if (images.length === 0) return { images: new Set(), aliases: [], listed: new Set() };
  // An image that cannot be read counts as missing: its load says why.
  const damaged = createFailures();
  const rows = await mapLimited(
    images,
    async (image, within) => ({
      image,
      names: (await damaged.keep(image, async () => runtime.namesOf(image, within))) ?? image.names,
    }),
    { width: FORMS_AT_ONCE, signal },
  );
  const own = new Set(rows.flatMap(({ names }) => names));
  const aliases = rows
    .flatMap(({ names }) => names.flatMap((of) => aliasesOf(of).map((alias) => ({ of, alias }))))
    .filter(({ alias }) => !own.has(alias));
  const known = await runtime.lookUp([...own, ...aliases.map(({ alias }) => alias)], { signal });
  const missing = await mapLimited(
    rows,
    async ({ image, names }, within) => {
      const options = { names, known, complete: false, ...within };
      const problem = await damaged.keep(image, async () => imageProblem(runtime, image, options));
      return problem === undefined && damaged.of(image) === undefined ? [] : [image];
    },
    { width: FORMS_AT_ONCE, signal },
  );
  const listed = new Set(known.keys());
  return { images: new Set(missing.flat()), aliases: aliases.filter(({ alias }) => !listed.has(alias)), listed };
}

/** Why an image cannot be used. */
interface Problem {
  readonly kind: 'missing' | 'not unpacked' | 'incomplete' | 'another';
  readonly text: string;
}

interface ProblemOptions extends Cancellable {
  readonly names: readonly string[];
  readonly known: ReadonlyMap<string, KnownName>;
  /** Blobs of its layers must be present, too. */
  readonly complete: boolean;
}

/** The first problem of an image on this node; undefined if containers can start from it. */
export async function imageProblem(
  runtime: ImageRuntime,
  image: RequiredImage,
  { names, known, complete, signal }: ProblemOptions,
): Promise<Problem | undefined> {
  for (const name of names) {
    const knownName = known.get(name);
    if (knownName === undefined) return { kind: 'missing', text: `${name} is missing` };
    if (!(await runtime.isImage(knownName, image, { signal }))) {
      const expected = image.digest === undefined ? '' : `, not ${image.digest}`;
      return { kind: 'another', text: `${name} is ${knownName.id}${expected}` };
    }
    if (!knownName.ready && (await hasLayers(image, { signal })))
      return { kind: 'not unpacked', text: `${name} is not unpacked` };
    if (complete && !knownName.complete) return { kind: 'incomplete', text: `blobs of ${name} are missing` };
  }
  return undefined;
}

/** False for an image with nothing to unpack. */
async function hasLayers({ form }: RequiredImage, options: Cancellable): Promise<boolean> {
  const content = await form(options);
  return (content.kind === 'oci' ? content.image.layers.length : content.layers) > 0;
}

const OLD = 'k8s.gcr.io';
const NEW = 'registry.k8s.io';

/** Other names that kubeadm may use for an image with this normalized name; none for most images. */
export function aliasesOf(name: string): readonly string[] {
  const ref = parseImageRef(name);
  if (typeof ref === 'string' || (ref.registry !== OLD && ref.registry !== NEW)) return [];
  const moved = { ...ref, registry: ref.registry === OLD ? NEW : OLD };
  // kubeadm uses coredns without its folder if the registry is not the default one.
  const isCoredns = ref.tag !== undefined && ref.repository.includes('coredns');
  const short = isCoredns ? [{ ...ref, registry: NEW, repository: 'coredns' }] : [];
  return [...new Set([moved, ...short].map(formatImageRef))].filter((alias) => alias !== name);
}
