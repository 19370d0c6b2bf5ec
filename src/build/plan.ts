/** A build plan as a value: it can be printed, saved, compared, and executed later or elsewhere. */
import * as v from 'valibot';

import { CurlewError, errorAbout } from '../core/errors.ts';
import { parseImageRef } from '../core/image-ref.ts';
import { shallowJson } from '../core/json.ts';
import { isOsId, type OsId } from '../core/os.ts';
import type { ImageFormat } from '../core/package.ts';
import { addonRef, formatRef, type AddonRef, type Arch } from '../core/ref.ts';
import { arch, digest, fileName, imageFormat, readJson, textList, tree } from '../core/schema.ts';
import type { BuilderStep } from '../manifest/step.ts';

export interface AddonPlan {
  readonly ref: AddonRef;
  /** The add-on's folder. */
  readonly root: string;
  readonly steps: readonly BuilderStep[];
}

export interface BuildPlan {
  readonly format: 1;
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
  readonly addons: readonly AddonPlan[];
}

interface PlanOptions {
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
}

/** Plans the add-ons in the order given. `MANIFEST_INVALID` if two have the same package file name. */
export function planBuild(addons: readonly AddonPlan[], { arch, imageFormat }: PlanOptions): BuildPlan {
  const seen = new Map<string, AddonPlan>();
  for (const addon of addons) {
    const key = formatRef(addon.ref).replaceAll('+', '-');
    const other = seen.get(key);
    if (other !== undefined) {
      throw new CurlewError(
        'MANIFEST_INVALID',
        `${addon.root} and ${other.root} would produce the same package ${key}`,
        { hint: 'select only one of them, or rename one of the folders' },
      );
    }
    seen.set(key, addon);
  }
  return { format: 1, arch, imageFormat, addons };
}

const HINT = 'print a plan with curlew build --dry-run';

const osId = v.custom<OsId>((value) => typeof value === 'string' && isOsId(value), 'not an operating system');
const step = v.variant('kind', [
  v.pipe(
    v.object({
      kind: v.literal('image'),
      id: fileName,
      reference: v.optional(v.unknown()),
      archive: v.optional(v.unknown()),
    }),
    v.check(({ reference, archive }) => {
      if (typeof reference === 'string') return typeof parseImageRef(reference) !== 'string';
      return typeof archive === 'string';
    }, 'no image reference or archive'),
  ),
  v.object({
    kind: v.literal('asset'),
    fileName,
    source: v.string(),
    local: v.boolean(),
    digest: v.exactOptional(digest),
  }),
  v.object({
    kind: v.literal('os-packages'),
    os: osId,
    output: v.picklist(['archives', 'deps']),
    packages: textList,
  }),
  v.object({ kind: v.literal('container-build'), destination: osId, dockerfile: v.string() }),
]);

const savedPlan = v.object({
  format: v.literal(1),
  arch,
  imageFormat,
  addons: v.array(
    v.object({
      ref: v.object({ name: v.string(), version: v.string(), tree }),
      root: v.string(),
      steps: v.array(step),
    }),
  ),
});

/** Parses a saved plan; checks everything in it as untrusted input. Anything wrong is `MANIFEST_INVALID`. */
export function parseBuildPlan(text: string, from: string): BuildPlan {
  const bad = errorAbout('MANIFEST_INVALID', `${from}: not a build plan`, HINT);
  const plan = readJson(savedPlan, text, { bad, parse: shallowJson });
  const addons = plan.addons.map(({ ref, root, ...addon }): AddonPlan => {
    // The fields that are not checked have no effect on which files are written.
    const steps = addon.steps as readonly BuilderStep[];
    if (isRepeated(steps)) throw bad(`steps of ${ref.name}-${ref.version} that make a file twice`);
    return { ref: addonRef(ref.name, ref.version, ref.tree), root, steps };
  });
  return planBuild(addons, { arch: plan.arch, imageFormat: plan.imageFormat });
}

/** Whether two steps would produce the same files. */
function isRepeated(steps: readonly BuilderStep[]): boolean {
  const made = steps.flatMap((step): readonly string[] => {
    if (step.kind === 'image') return [`image ${step.id}`];
    if (step.kind === 'asset') return [`asset ${step.fileName}`];
    return step.kind === 'os-packages' ? [`${step.output} ${step.os}`] : [];
  });
  return new Set(made).size < made.length;
}
