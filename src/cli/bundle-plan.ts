/** The words of commands that plan a bundle, and the plan they mean. */
import { resolve } from 'node:path';
import { planFrom, type OpenPlan } from '../bundle/plan-from.ts';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { CurlewError } from '../core/errors.ts';
import { readLimited } from '../files/read-limited.ts';
import type { Installer } from '../installer/installer.ts';
import { parseInstaller } from '../installer/parse.ts';
import { archOf } from './arch.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { noteWarnings } from './run-source.ts';
import { openStoreFor, STORE_OPTIONS } from './stores.ts';
import { toolVersion } from './version.ts';

/** What decides the bytes of a bundle, and where they come from. */
export const BUNDLE_PLAN_OPTIONS = {
  from: { type: 'string', value: 'STORE', help: 'folder or s3://bucket/prefix that curlew publish wrote' },
  release: { type: 'string', value: 'R', help: 'the release to take packages from (default: the current one)' },
  arch: { type: 'string', value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  ...STORE_OPTIONS,
} satisfies OptionSpecs;

/** The plan that the words mean; nothing is written. */
export async function openPlan(args: Arguments, context: CommandContext): Promise<OpenPlan> {
  const { spec, from } = wordsOf(args);
  const arch = archOf(args);
  const { bytes, installer } = await readSpec(spec, context);
  const store = await openStoreFor(from, args, context, { create: false });
  const { signal } = context;
  return planFrom(store, installer, { spec: bytes, release: args.text('release'), arch, tool: toolVersion(), signal });
}

function wordsOf(args: Arguments): { readonly spec: string; readonly from: string } {
  const [spec, ...more] = args.positionals;
  const from = args.text('from');
  if (spec === undefined || more.length > 0) {
    throw new CurlewError('USAGE', 'curlew bundle: name one installer spec', {
      hint: 'curlew bundle installer.yaml …',
    });
  }
  if (from === undefined) throw new CurlewError('USAGE', 'curlew bundle: say with --from where the packages are');
  return { spec, from };
}

async function readSpec(
  path: string,
  { cwd, report }: CommandContext,
): Promise<{ readonly bytes: Uint8Array; readonly installer: Installer }> {
  const bytes = await readLimited(resolve(cwd, path), INSTALLER_LIMIT);
  const { installer, diagnostics } = parseInstaller(path, bytes.toString('utf8'));
  if (installer === undefined)
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, { diagnostics });
  noteWarnings(report, diagnostics);
  return { bytes, installer };
}
