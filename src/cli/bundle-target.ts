/** Where a planned bundle goes, by the words of the command. */
import { resolve } from 'node:path';
import { assembleBundle } from '../bundle/assemble.ts';
import type { OpenPlan } from '../bundle/plan-from.ts';
import { pourBundle } from '../bundle/pour.ts';
import { CurlewError } from '../core/errors.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { openStandardOutput } from './standard-output.ts';

export const BUNDLE_TARGET_OPTIONS = {
  output: { type: 'string', short: 'o', value: 'FILE', help: 'the bundle to write, or - for standard output' },
  verify: { type: 'boolean', help: 'prove every byte of the packages again while copying' },
  force: { type: 'boolean', help: 'replace the file if it is there' },
  plan: { type: 'boolean', help: 'say what would be copied from where, and write nothing' },
} satisfies OptionSpecs;

/** Where the bundle went: the words that people know it by. Undefined when only the plan was asked for. */
export type Written = string | undefined;

/** What `-o` calls standard output. */
export const STANDARD_OUTPUT = '-';

/** Carries a plan out. */
export type BundleTarget = (open: OpenPlan) => Promise<Written>;

/** Before anything is read: `USAGE` when the words name no place. */
export function bundleTarget(args: Arguments, { cwd, report, signal }: CommandContext): BundleTarget {
  const output = args.text('output');
  if (args.flag('plan')) return async () => undefined;
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
    return async ({ plan, sources }) => {
      await pourBundle(plan, sources, write, { ...options, name: 'standard output', title: 'bundle', atOnce: 1 });
      return STANDARD_OUTPUT;
    };
  }
  const file = resolve(cwd, output);
  return async ({ plan, sources }) => {
    await assembleBundle(plan, sources, file, options);
    return file;
  };
}
