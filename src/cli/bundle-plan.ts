/** The words of commands that plan a bundle, and the plan they mean. */
import { DOWNGRADE_OPTION, KEY_OPTIONS, STORE_OPTIONS } from './options.ts';
import { resolve } from 'node:path';
import { openSavedPlan } from '../bundle/open-saved.ts';
import { parseBundlePlan, PLAN_LIMIT, type SavedBundlePlan } from '../bundle/plan-file.ts';
import {
  planFrom,
  type GivenPackage,
  type OpenPlan,
  type PlanFromOptions,
  type PlannedSpec,
} from '../bundle/plan-from.ts';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { withFurther, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import { readGivenFile } from '../platform/files/state-file.ts';
import type { Installer } from '../spec/installer.ts';
import { parseInstaller, type ParsedInstaller } from '../spec/parse.ts';
import { fileOf, listPackages } from '../store/release/catalogue.ts';
import type { NotCurrent, ReleaseTrust } from '../store/release/signed-release.ts';
import type { Store } from '../store/store.ts';
import { archOf } from './values.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { besideOf, idleSystems, kurlScriptsOf, systemsOf, withoutAddons, type ReadSpec } from './bundle-choice.ts';
import { BUNDLE_IMAGE_OPTIONS, imagesAsked, openImages } from './bundle-images.ts';
import { catalogueOf, notingCurrent, trustOfStore } from '../app/ports/release-trust.ts';
import { noteWarnings } from '../app/ports/run-source.ts';
import { openStoreFor } from '../app/ports/stores.ts';
import { toolVersion } from '../app/version.ts';

export const SETTINGS_OPTION = {
  'allow-invalid-settings': {
    type: 'boolean',
    help: 'take a spec whose settings do not fit its packages: the spec of a site is to mend them',
  },
} satisfies OptionSpecs;

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
  os: {
    type: 'string',
    multiple: true,
    value: 'OS[,OS]',
    help: 'keep host packages of these systems only, such as ubuntu-22.04,rhel-9 (default: all)',
  },
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
  ...SETTINGS_OPTION,
  ...BUNDLE_IMAGE_OPTIONS,
  ...KEY_OPTIONS,
  ...DOWNGRADE_OPTION,
  ...STORE_OPTIONS,
} satisfies OptionSpecs;

export interface NamedPlan extends OpenPlan {
  /** Address of the store that it was made from. */
  readonly store: string;
  /** The packages are those of a signed release: every byte is to be proved while it is copied. */
  readonly signed: boolean;
  /** What the store says against the release that was named; absent when it says nothing. */
  readonly notCurrent?: NotCurrent | undefined;
}

/** The plan that the words mean; nothing is written. All mistakes in the spec that can be known are reported at once. */
export async function openPlan(args: Arguments, context: CommandContext): Promise<NamedPlan> {
  const saved = args.text('from-plan');
  if (saved !== undefined) return openSaved(saved, args, context);
  const { spec, from } = wordsOf(args);
  const words = {
    arch: archOf(args),
    beside: besideOf(args),
    os: systemsOf(args),
    kurlScripts: kurlScriptsOf(args, context),
  };
  const read = await readSpec(spec, context);
  const without = args.texts('without');
  if (read.document === undefined) {
    const addons = read.installer.addons.filter(
      ({ name, specName }) => !without.includes(name) && !without.includes(specName),
    );
    const rest = { ...words, bytes: read.bytes, installer: { ...read.installer, addons } };
    throw await everyMistake(spec, read.diagnostics, async () =>
      planStore({ ...rest, from, given: NO_PACKAGES }, args, context),
    );
  }
  const { bytes, installer } = withoutAddons(read, without, spec);
  const asked = await imagesAsked(installer, args, context);
  let images: AsyncDisposable | undefined;
  const close = async (): Promise<void> => images?.[Symbol.asyncDispose]();
  const given = async (): Promise<readonly GivenPackage[]> => {
    if (asked.length === 0) return [];
    const opened = await openImages(asked, args, context);
    images = opened;
    return [opened];
  };
  try {
    const open = await planStore({ ...words, bytes, installer, from, given }, args, context);
    noteWarnings(context.report, open.findings);
    for (const text of idleSystems(args, open.plan)) context.report({ type: 'note', level: 'warning', text });
    const dispose = async (): Promise<void> => {
      await open[Symbol.asyncDispose]();
      await close();
    };
    return { ...open, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await close();
    throw error;
  }
}

interface PlanWords extends Pick<PlanFromOptions, 'arch' | 'beside' | 'os' | 'kurlScripts' | 'given'> {
  readonly bytes: Uint8Array;
  readonly installer: Installer;
  readonly from: string;
}

const NO_PACKAGES = async (): Promise<readonly GivenPackage[]> => [];
const SETTINGS_HINT = 'mend the spec; or, where the spec of a site is to mend them, use --allow-invalid-settings';

async function planStore(
  { from, bytes, installer, ...words }: PlanWords,
  args: Arguments,
  context: CommandContext,
): Promise<NamedPlan & Pick<PlannedSpec, 'findings'>> {
  const store = await openStoreFor(from, args.options, context, { create: false });
  const { signal } = context;
  const release = args.text('release');
  const allowOlder = args.flag('allow-downgrade');
  const trust = await trustOfStore(args.options, context, { address: store.address, allowOlder });
  const { onNotCurrent, result } = notingCurrent(context);
  const catalogue = await catalogueOf(store, { release, trust, onNotCurrent, signal });
  const settings = args.flag('allow-invalid-settings') ? 'allow' : 'strict';
  const options = { ...words, spec: bytes, catalogue, settings, tool: toolVersion(), signal } as const;
  const open = await planFrom(store, installer, { ...options, settingsHint: SETTINGS_HINT });
  return { ...open, store: store.address, signed: trust !== undefined, ...result() };
}

/** What is wrong with the text of a spec, and what the store does not have or refuses of the rest. */
async function everyMistake(
  path: string,
  found: readonly Diagnostic[],
  plan: () => Promise<AsyncDisposable>,
): Promise<CurlewError> {
  const more = await moreMistakes(plan);
  return new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, {
    diagnostics: withFurther(found, more),
  });
}

async function moreMistakes(plan: () => Promise<AsyncDisposable>): Promise<readonly Diagnostic[]> {
  try {
    await using _ = await plan();
    return [];
  } catch (error) {
    // Whatever else is wrong is reported when the spec is right.
    if (error instanceof CurlewError && error.code !== 'CANCELLED') return error.diagnostics;
    throw error;
  }
}

/** What a plan is made from was decided when it was saved. */
const DECIDED = [
  'release',
  'arch',
  'with',
  'without',
  'os',
  'upgrade-from',
  'layout',
  'kurl-scripts',
  'image',
  'allow-invalid-settings',
];

async function openSaved(path: string, args: Arguments, context: CommandContext): Promise<NamedPlan> {
  const other = DECIDED.find((name) => args.texts(name).length > 0 || args.flag(name));
  if (args.positionals.length > 0 || other !== undefined) {
    const what = other === undefined ? 'the installer spec' : `--${other}`;
    throw new CurlewError('USAGE', `curlew bundle: the plan of --from-plan has decided ${what} already`);
  }
  const saved = await readBundlePlan(path, context);
  const from = args.text('from');
  if (from !== undefined) {
    const store = await openStoreFor(from, args.options, context, { create: false });
    // Whoever saved the plan has chosen its release.
    const trust = await trustOfStore(args.options, context, { address: store.address, allowOlder: true });
    if (trust !== undefined) await requireSigned(saved, store, trust, context.signal);
    return { ...(await openSavedPlan(saved, store, context)), store: saved.store, signed: trust !== undefined };
  }
  if (!args.flag('plan')) throw new CurlewError('USAGE', 'curlew bundle: say with --from where the packages are');
  return { ...saved, sources: [], signed: false, [Symbol.asyncDispose]: async () => undefined };
}

/** What the plan copies must be what the signed catalogue of its release names. */
async function requireSigned(
  { plan }: SavedBundlePlan,
  store: Store,
  trust: ReleaseTrust,
  signal: AbortSignal,
): Promise<void> {
  const { release } = plan.bundle;
  const catalogue = await catalogueOf(store, { release, trust, signal });
  const contents = new Map(
    listPackages(catalogue).map((listed) => [storeKey.package(release, fileOf(listed)), listed.entry.toc]),
  );
  const ofStore = plan.sources.slice(0, plan.packages.length + plan.beside.length);
  const stranger = ofStore.find(({ key, tocDigest }) => contents.get(key) !== tocDigest);
  if (stranger === undefined) return;
  throw new CurlewError('SIGNATURE_INVALID', `carry out the plan: its ${stranger.key} is not the signed one`, {
    hint: 'make the plan anew, with --key',
  });
}

/** A plan that was saved; what is none is `FILE_UNUSABLE`. */
export async function readBundlePlan(path: string, { cwd }: Pick<CommandContext, 'cwd'>): Promise<SavedBundlePlan> {
  const text = await readGivenFile(resolve(cwd, path), PLAN_LIMIT);
  if (text !== undefined) return parseBundlePlan(text, path);
  throw new CurlewError('NOT_FOUND', `read ${path}: no such file`, {
    hint: 'curlew bundle installer.yaml --from STORE --plan --out FILE writes one',
  });
}

function wordsOf(args: Arguments): { readonly spec: string; readonly from: string } {
  const [spec] = args.positionals;
  const from = args.text('from');
  if (spec === undefined) {
    throw new CurlewError('USAGE', 'curlew bundle: name one installer spec', {
      hint: 'curlew bundle installer.yaml …',
    });
  }
  if (from === undefined) throw new CurlewError('USAGE', 'curlew bundle: say with --from where the packages are');
  return { spec, from };
}

/** `document` is undefined where the text has mistakes: the installer is what could be read of it then. */
type GivenSpec =
  | ReadSpec
  | (Omit<ReadSpec, 'document'> & { readonly document: undefined } & Pick<ParsedInstaller, 'diagnostics'>);

async function readSpec(path: string, { cwd, report }: CommandContext): Promise<GivenSpec> {
  const bytes = await readLimited(resolve(cwd, path), INSTALLER_LIMIT);
  const { installer, document, readable, diagnostics } = parseInstaller(path, bytes.toString('utf8'));
  if (readable === undefined)
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, { diagnostics });
  if (installer === undefined || document === undefined)
    return { bytes, installer: readable, document: undefined, diagnostics };
  noteWarnings(report, diagnostics);
  return { bytes, installer, document };
}
