/** The words of commands that plan a bundle, and the plan they mean. */
import { resolve } from 'node:path';
import { openSavedPlan } from '../bundle/open-saved.ts';
import { parseBundlePlan, PLAN_LIMIT, type SavedBundlePlan } from '../bundle/plan-file.ts';
import { planFrom, type OpenPlan } from '../bundle/plan-from.ts';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { CurlewError } from '../core/errors.ts';
import { readLimited } from '../files/read-limited.ts';
import { readStateFile } from '../files/state-file.ts';
import { parseInstaller } from '../installer/parse.ts';
import { archOf } from './arch.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { besideOf, kurlScriptsOf, withoutAddons, type ReadSpec } from './bundle-choice.ts';
import { noteWarnings } from './run-source.ts';
import { openStoreFor, STORE_OPTIONS } from './stores.ts';
import { toolVersion } from './version.ts';

/** What decides the bytes of a bundle, and where they come from. */
export const BUNDLE_PLAN_OPTIONS = {
  from: { type: 'string', value: 'STORE', help: 'folder or s3://bucket/prefix that curlew publish wrote' },
  release: { type: 'string', value: 'R', help: 'the release to take packages from (default: the current one)' },
  arch: { type: 'string', value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  with: {
    type: 'string',
    multiple: true,
    value: 'NAME[@VERSION]',
    help: 'a package beside those of the spec, which the spec of a site may name',
  },
  without: { type: 'string', multiple: true, value: 'NAME', help: 'leave an add-on out of the spec' },
  'upgrade-from': {
    type: 'string',
    multiple: true,
    value: '[NAME@]VERSION',
    help: 'add the steps of an upgrade from this version of kubernetes (or rook@, containerd@) or a later one',
  },
  layout: { type: 'string', value: 'kurl', help: "for kURL's own scripts, of --kurl-scripts, in place of curlew" },
  'kurl-scripts': { type: 'string', value: 'DIR', help: "kURL's install.sh, join.sh, upgrade.sh, tasks.sh, and kurl/" },
  'from-plan': {
    type: 'string',
    value: 'FILE',
    help: 'carry out the plan that --plan --out saved, in place of a spec',
  },
  ...STORE_OPTIONS,
} satisfies OptionSpecs;

export interface NamedPlan extends OpenPlan {
  /** Address of the store that it was made from. */
  readonly store: string;
}

/** The plan that the words mean; nothing is written. */
export async function openPlan(args: Arguments, context: CommandContext): Promise<NamedPlan> {
  const saved = args.text('from-plan');
  if (saved !== undefined) return openSaved(saved, args, context);
  const { spec, from } = wordsOf(args);
  const arch = archOf(args);
  const beside = besideOf(args);
  const kurlScripts = kurlScriptsOf(args, context);
  const { bytes, installer } = withoutAddons(await readSpec(spec, context), args.texts('without'), spec);
  const store = await openStoreFor(from, args, context, { create: false });
  const { signal } = context;
  const release = args.text('release');
  const open = await planFrom(store, installer, {
    spec: bytes,
    release,
    arch,
    beside,
    kurlScripts,
    tool: toolVersion(),
    signal,
  });
  return { ...open, store: store.address };
}

/** What a plan is made from was decided when it was saved. */
const DECIDED = ['release', 'arch', 'with', 'without', 'upgrade-from', 'layout', 'kurl-scripts'];

async function openSaved(path: string, args: Arguments, context: CommandContext): Promise<NamedPlan> {
  const other = DECIDED.find((name) => args.texts(name).length > 0);
  if (args.positionals.length > 0 || other !== undefined) {
    const what = other === undefined ? 'the installer spec' : `--${other}`;
    throw new CurlewError('USAGE', `curlew bundle: the plan of --from-plan has decided ${what} already`);
  }
  const saved = await readBundlePlan(path, context);
  const from = args.text('from');
  if (from !== undefined) {
    const store = await openStoreFor(from, args, context, { create: false });
    return { ...(await openSavedPlan(saved, store, context)), store: saved.store };
  }
  if (!args.flag('plan')) throw new CurlewError('USAGE', 'curlew bundle: say with --from where the packages are');
  return { ...saved, sources: [], [Symbol.asyncDispose]: async () => undefined };
}

/** A plan that was saved; what is none is `FILE_UNUSABLE`. */
export async function readBundlePlan(path: string, { cwd }: Pick<CommandContext, 'cwd'>): Promise<SavedBundlePlan> {
  const text = await readStateFile(resolve(cwd, path), PLAN_LIMIT);
  if (text !== undefined) return parseBundlePlan(text, path);
  throw new CurlewError('NOT_FOUND', `read ${path}: no such file`, {
    hint: 'curlew bundle installer.yaml --from STORE --plan --out FILE writes one',
  });
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

async function readSpec(path: string, { cwd, report }: CommandContext): Promise<ReadSpec> {
  const bytes = await readLimited(resolve(cwd, path), INSTALLER_LIMIT);
  const { installer, document, diagnostics } = parseInstaller(path, bytes.toString('utf8'));
  if (installer === undefined || document === undefined)
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, { diagnostics });
  noteWarnings(report, diagnostics);
  return { bytes, installer, document };
}
