/** A build plan as a value: it can be printed, saved, compared, and executed later or elsewhere. */
import { canonicalJson } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { pathProblem } from '../core/layout.ts';
import { isOsId } from '../core/os.ts';
import type { ImageFormat } from '../core/package.ts';
import { addonRef, ARCHES, formatRef, type AddonRef, type Arch } from '../core/ref.ts';
import { parseImageRef } from '../core/image-ref.ts';
import { isDigest } from '../core/digest.ts';
import { isObject, shallowJson } from '../core/json.ts';
import type { Step } from '../manifest/step.ts';

export interface AddonPlan {
  readonly ref: AddonRef;
  /** The add-on's folder. */
  readonly root: string;
  readonly steps: readonly Step[];
}

export interface BuildPlan {
  readonly format: 1;
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
  readonly addons: readonly AddonPlan[];
}

export interface PlanOptions {
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
        {
          hint: 'select only one of them, or rename one of the folders',
        },
      );
    }
    seen.set(key, addon);
  }
  return { format: 1, arch, imageFormat, addons };
}

export function formatBuildPlan(plan: BuildPlan): string {
  return `${canonicalJson(plan)}\n`;
}

const HINT = 'print a plan with curlew build --plan-only';

/** Parses a saved plan; checks everything in it as untrusted input. */
export function parseBuildPlan(text: string, from: string): BuildPlan {
  const bad = (what: string): CurlewError =>
    new CurlewError('MANIFEST_INVALID', `${from}: not a build plan: ${what}`, { hint: HINT });
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch {
    throw bad('not JSON');
  }
  if (!isObject(value) || value['format'] !== 1) throw bad('it has no "format": 1');
  const arch = ARCHES.find((known) => known === value['arch']);
  const imageFormat = value['imageFormat'];
  if (arch === undefined) throw bad(`its arch is not one of ${ARCHES.join(', ')}`);
  if (imageFormat !== 'oci' && imageFormat !== 'docker-archive')
    throw bad('its imageFormat is neither oci nor docker-archive');
  if (!Array.isArray(value['addons'])) throw bad('it has no list of addons');
  const addons = value['addons'].map((addon: unknown): AddonPlan => {
    if (!isObject(addon) || !isObject(addon['ref']) || typeof addon['root'] !== 'string')
      throw bad('an add-on has no ref or root');
    const { name, version, tree } = addon['ref'];
    if (typeof name !== 'string' || typeof version !== 'string') throw bad('a ref has no name or version');
    if (tree !== 'addons' && tree !== 'packages') throw bad(`the tree of ${name} is neither addons nor packages`);
    const steps: unknown = addon['steps'];
    if (!Array.isArray(steps) || !steps.every(isStep) || isRepeated(steps))
      throw bad(`the steps of ${name}-${version} are not valid, or produce a file twice`);
    return { ref: addonRef(name, version, tree), root: addon['root'], steps };
  });
  return planBuild(addons, { arch, imageFormat });
}

/** Whether two steps would produce the same files. */
function isRepeated(steps: readonly Step[]): boolean {
  const made = steps.flatMap((step): readonly string[] => {
    if (step.kind === 'image') return [`image ${step.id}`];
    if (step.kind === 'asset') return [`asset ${step.fileName}`];
    return step.kind === 'os-packages' ? [`${step.output} ${step.os}`] : [];
  });
  return new Set(made).size < made.length;
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && !value.includes('/') && pathProblem(value) === undefined;
}

function isStep(value: unknown): value is Step {
  if (!isObject(value)) return false;
  const { kind, id, reference, archive, fileName, source, local, digest, os, output, packages } = value;
  switch (kind) {
    case 'image':
      if (!isName(id)) return false;
      if (typeof reference === 'string') return typeof parseImageRef(reference) !== 'string';
      return typeof archive === 'string';
    case 'asset':
      if (!isName(fileName) || typeof source !== 'string' || typeof local !== 'boolean') return false;
      return digest === undefined || isDigest(digest);
    case 'os-packages':
      if (typeof os !== 'string' || !isOsId(os) || !Array.isArray(packages)) return false;
      return (output === 'archives' || output === 'deps') && packages.every((name) => typeof name === 'string');
    case 'container-build':
      return isOsId(String(value['destination'])) && typeof value['dockerfile'] === 'string';
    default:
      return false;
  }
}
