/** Where a planned bundle goes, by the words of the command. */
import { resolve } from 'node:path';
import { assembleBundle } from '../bundle/write/assemble.ts';
import { comparePlans, type PlanDifference } from '../bundle/compare.ts';
import { formatBundlePlan } from '../bundle/plan-file.ts';
import { planSource } from '../bundle/write/plan-source.ts';
import { pourBundle } from '../bundle/write/pour.ts';
import { storeBundle } from '../bundle/write/store-bundle.ts';
import { CurlewError } from '../core/errors.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { readBundlePlan, type NamedPlan } from './bundle-plan.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { STANDARD_OUTPUT } from './output.ts';
import { openStandardOutput } from './standard-output.ts';
import { PARTS_OPTIONS, partsWords, writePartsTo } from './parts-target.ts';
import { openStoreFor } from '../app/ports/stores.ts';

export const BUNDLE_TARGET_OPTIONS = {
  output: {
    type: 'string',
    short: 'o',
    value: 'FILE',
    help: 'the bundle to write: a file, s3://bucket/prefix/name.tar.gz, or - for standard output',
  },
  verify: { type: 'boolean', help: 'prove every byte of the packages again while copying' },
  split: { type: 'string', value: 'SIZE', help: 'write parts of at most so many bytes, as 4480M or 1.5G' },
  ...PARTS_OPTIONS,
  force: { type: 'boolean', help: 'replace the file if it is there' },
  plan: { type: 'boolean', help: 'say what would be copied from where, and write no bundle' },
  out: { type: 'string', value: 'FILE', help: 'with --plan: save the plan, for --from-plan' },
  against: { type: 'string', value: 'FILE', help: 'with --plan: say what differs from this saved plan' },
} satisfies OptionSpecs;

/** Where things went: the words that people know them by. */
export interface Written {
  /** The bundle; undefined when only the plan was asked for. */
  readonly file: string | undefined;
  /** The saved plan, where that was asked for. */
  readonly saved?: string | undefined;
  /** From the plan of `--against`. */
  readonly difference?: PlanDifference | undefined;
}

/** Carries a plan out. */
export type BundleTarget = (open: NamedPlan) => Promise<Written>;

/** Before anything is read: `USAGE` when the words name no place, `FILE_EXISTS` when they name one that is taken. */
export async function bundleTarget(args: Arguments, context: CommandContext): Promise<BundleTarget> {
  const { cwd, report, signal } = context;
  const output = args.text('output');
  if (args.flag('plan')) return planTarget(args, context);
  for (const word of ['out', 'against']) {
    if (args.text(word) !== undefined) throw new CurlewError('USAGE', `curlew bundle: --${word} goes with --plan`);
  }
  if (args.text('split') !== undefined || args.texts('to').length > 0) return partsTarget(args, context);
  if (output === undefined) {
    throw new CurlewError('USAGE', 'curlew bundle: say with -o which file to write, or ask for --plan');
  }
  const options = { force: args.flag('force'), verify: args.flag('verify'), report, signal };
  if (output === STANDARD_OUTPUT) {
    if (args.flag('json')) {
      throw new CurlewError('USAGE', 'curlew bundle: with -o - the bundle itself is what standard output carries', {
        hint: 'leave out --json, or ask for --plan --json before',
      });
    }
    const write = openStandardOutput({ signal });
    return async ({ plan, sources, signed }) => {
      await pourBundle(plan, sources, write, {
        ...options,
        verify: options.verify || signed,
        name: 'standard output',
        title: 'bundle',
        atOnce: 1,
      });
      return { file: STANDARD_OUTPUT };
    };
  }
  if (isS3Address(output)) {
    const { address, key } = objectOf(output);
    return async ({ plan, sources, signed }) => {
      const store = await openStoreFor(address, args.options, context, { create: false });
      await storeBundle(plan, sources, { store, key }, { ...options, verify: options.verify || signed });
      return { file: `${store.address}/${key}` };
    };
  }
  const file = resolve(cwd, output);
  await refuseExisting(file, options.force);
  return async ({ plan, sources, signed }) => {
    await assembleBundle(plan, sources, file, { ...options, verify: options.verify || signed });
    return { file };
  };
}

function isS3Address(text: string): boolean {
  return /^s3:\/\//i.test(text);
}

/** The store that holds an object, and its key there. */
function objectOf(output: string): { readonly address: string; readonly key: string } {
  const slash = output.lastIndexOf('/');
  const [address, key] = [output.slice(0, slash), output.slice(slash + 1)];
  if (key !== '' && address.length > 's3://'.length) return { address, key };
  throw new CurlewError('USAGE', `curlew bundle: -o ${output} names no object`, {
    hint: 'write it as s3://bucket/prefix/name.tar.gz',
  });
}

async function planTarget(args: Arguments, context: CommandContext): Promise<BundleTarget> {
  const [out, against] = [args.text('out'), args.text('against')];
  const saved = out === undefined ? undefined : resolve(context.cwd, out);
  const force = args.flag('force');
  if (saved !== undefined) await refuseExisting(saved, force);
  return async ({ plan, store }) => {
    const older = against === undefined ? undefined : await readBundlePlan(against, context);
    if (saved !== undefined) await writeText(saved, formatBundlePlan({ store, plan }), { force });
    return { file: undefined, saved, difference: older === undefined ? undefined : comparePlans(older.plan, plan) };
  };
}

/** Where the words want parts: they come into being as the bundle does, which is never there as a whole. */
function partsTarget(args: Arguments, context: CommandContext): BundleTarget {
  const isMedia = args.texts('to').length > 0;
  const output = args.text('output');
  if (output === undefined ? !isMedia : output === STANDARD_OUTPUT) {
    throw new CurlewError('USAGE', 'curlew bundle: say with -o what parts are named after, or with --to where they go');
  }
  const words = partsWords(args, context, { size: 'split', fallback: 'bundle.tar.gz' });
  const { report, signal } = context;
  const options = { ...words, isMedia, force: args.flag('force'), verify: args.flag('verify'), report, signal };
  return async ({ plan: { splice }, sources, signed }) => {
    const source = planSource(words.name, splice, sources);
    const proving = { ...options, verify: options.verify || signed };
    const { media } = await writePartsTo({ source, index: splice.index }, proving);
    return { file: media[0]?.path };
  };
}
