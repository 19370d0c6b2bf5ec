/** Writes a planned bundle to its target. */
import { resolve } from 'node:path';
import { comparePlans, type PlanDifference } from '../../ship/bundle/compare.ts';
import { formatBundlePlan } from '../../ship/bundle/plan-file.ts';
import { sourceNames } from '../../ship/bundle/write/entry-check.ts';
import { planSource } from '../../ship/bundle/write/plan-source.ts';
import { writeBundle, writeBundleFile } from '../../ship/bundle/write/write-bundle.ts';
import { storeBundle } from '../../ship/bundle/write/store-bundle.ts';
import { CurlewError } from '../../core/errors.ts';
import { refuseExisting } from '../../platform/files/name-file.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { readBundlePlan, type NamedPlan } from './open-plan.ts';
import type { Context } from '../../core/context.ts';
import { ADD_ON_NODES, modeFor } from '../archives/private-bundle.ts';
import { partsPlace, writePartsTo } from '../archives/write-parts.ts';
import { openStoreFor } from '../open/stores.ts';
import type { BundleTargetRequest } from '../../requests/bundle.ts';

/** Receives a bundle that is not written to a file. */
export interface ByteSink {
  /** Name for messages and the result. */
  readonly name: string;
  /** Resolves when the piece is written; then the next one is sent. */
  readonly write: (piece: Uint8Array) => Promise<void>;
}

/** The written files. */
export interface WrittenFiles {
  /** The bundle; undefined if only the plan was requested. */
  readonly file: string | undefined;
  /** The saved plan, if requested. */
  readonly saved?: string | undefined;
  /** Difference from the plan of `against`. */
  readonly difference?: PlanDifference | undefined;
}

/** Executes a plan. */
export type BundleTarget = (open: NamedPlan) => Promise<WrittenFiles>;

/** Before anything is read: throws `USAGE` if the request names no target, `FILE_EXISTS` if the target exists. */
export async function bundleTarget(
  request: BundleTargetRequest,
  context: Context,
  sink: ByteSink | undefined,
): Promise<BundleTarget> {
  const { cwd, report, signal } = context;
  const { output, to = [], force = false, verify = false } = request;
  if (request.dryRun === true) return planTarget(request, context);
  for (const word of ['out', 'against'] as const) {
    if (request[word] !== undefined) throw new CurlewError('USAGE', `curlew bundle: --${word} requires --dry-run`);
  }
  if (request.split !== undefined || to.length > 0) {
    if (sink === undefined && (output !== undefined || to.length > 0)) return partsTarget(request, context);
    throw new CurlewError('USAGE', 'curlew bundle: specify the parts with -o, or their folders with --to');
  }
  const options = { force, verify, report, signal };
  if (sink !== undefined) {
    const { name, write } = sink;
    return async ({ plan, sources, signed }) => {
      const proving = { ...options, verify: verify || signed };
      await writeBundle(plan, sources, write, { ...proving, name, title: 'bundle', concurrency: 1 });
      return { file: name };
    };
  }
  if (output === undefined) {
    throw new CurlewError('USAGE', 'curlew bundle: specify the file to write with -o, or use --dry-run');
  }
  if (/^s3:\/\//i.test(output)) {
    const { address, key } = objectOf(output);
    return async ({ plan, sources, secrets, signed }) => {
      if (secrets.length > 0) {
        const text = `${output}: the spec has secrets (${secrets.join(', ')}), which everybody can read who can read this object; ${ADD_ON_NODES}`;
        report({ type: 'note', level: 'warning', text });
      }
      const store = await openStoreFor(address, request, context, { create: false });
      await storeBundle(plan, sources, { store, key }, { ...options, verify: options.verify || signed });
      return { file: `${store.address}/${key}` };
    };
  }
  const file = resolve(cwd, output);
  await refuseExisting(file, options.force);
  return async ({ plan, sources, secrets, signed }) => {
    const mode = modeFor(secrets, output, context);
    await writeBundleFile(plan, sources, file, { ...options, mode, verify: options.verify || signed });
    return { file };
  };
}

/** The store that holds an object, and its key there. */
function objectOf(output: string): { readonly address: string; readonly key: string } {
  const slash = output.lastIndexOf('/');
  const [address, key] = [output.slice(0, slash), output.slice(slash + 1)];
  if (key !== '' && address.length > 's3://'.length) return { address, key };
  throw new CurlewError('USAGE', `curlew bundle: -o ${output} does not name an object`, {
    hint: 'write it as s3://bucket/prefix/name.tar.gz',
  });
}

async function planTarget(request: BundleTargetRequest, context: Context): Promise<BundleTarget> {
  const { out, against, force = false } = request;
  const saved = out === undefined ? undefined : resolve(context.cwd, out);
  if (saved !== undefined) await refuseExisting(saved, force);
  return async ({ plan, secrets, store }) => {
    const older = against === undefined ? undefined : await readBundlePlan(against, context);
    if (out !== undefined && saved !== undefined) {
      await writeText(saved, formatBundlePlan({ store, plan }), { force, mode: modeFor(secrets, out, context) });
    }
    return { file: undefined, saved, difference: older === undefined ? undefined : comparePlans(older.plan, plan) };
  };
}

/** Parts are written directly; the whole bundle is never stored. */
function partsTarget(request: BundleTargetRequest, context: Context): BundleTarget {
  const { split: limit, force = false, verify = false } = request;
  const place = partsPlace(request, context, 'bundle.tar.gz');
  const { report, signal } = context;
  const options = { ...place, limit, force, report, signal };
  return async ({ plan, sources, secrets, signed }) => {
    const { splice } = plan;
    const mode = modeFor(secrets, place.name, context);
    const source = planSource(place.name, splice, sources);
    const { media } = await writePartsTo(
      { source, index: splice.index, nameOf: sourceNames(splice, sources, place.name) },
      { ...options, mode, verify: verify || signed },
    );
    return { file: media[0]?.path };
  };
}
