/** Opens the plan of a bundle: from a spec and a store, or from a file. */
import { resolve } from 'node:path';
import { openSavedPlan, secretsOfPlan } from '../../ship/bundle/open-saved.ts';
import { parseBundlePlan, PLAN_LIMIT, type SavedBundlePlan } from '../../ship/bundle/plan-file.ts';
import {
  planFrom,
  type GivenPackage,
  type OpenPlan,
  type PlanFromOptions,
  type PlannedSpec,
} from '../../ship/bundle/plan-from.ts';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { withFurther, type Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import type { Arch } from '../../core/ref.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { readGivenFile } from '../../platform/files/state-file.ts';
import { parseInstaller, withoutNameGuesses, type ParsedInstaller } from '../../spec/parse.ts';
import { fileOf, listPackages } from '../../ship/release/make-catalog.ts';
import type { NotCurrent, ReleaseTrust } from '../../ship/release/signed-release.ts';
import type { Store } from '../../ship/store/store.ts';
import type { Context } from '../../core/context.ts';
import { extrasOf, idleSystems, kurlScriptsOf, systemsOf, withoutAddons, type ReadSpec } from './choice.ts';
import { extraImages, openImages } from './images.ts';
import { executableOpener, findExecutable } from '../open/executables.ts';
import { catalogOf, notingCurrent, trustOfStore } from '../open/release-trust.ts';
import { noteWarnings } from '../sources/run-source.ts';
import { openStoreFor } from '../open/stores.ts';
import { toolVersion } from '../../own/version.ts';
import type { BundlePlanRequest } from '../../requests/bundle.ts';

export interface NamedPlan extends OpenPlan {
  /** Address of the store that it was created from. */
  readonly store: string;
  /** The packages belong to a signed release: every byte must be verified while it is copied. */
  readonly signed: boolean;
  /** Set if the named release is not the current one of the store. */
  readonly notCurrent?: NotCurrent | undefined;
}

/** Opens the requested plan and writes nothing. Reports all known errors in the spec at once. */
export async function openPlan(request: BundlePlanRequest, context: Context): Promise<NamedPlan> {
  const saved = request.fromPlan;
  if (saved !== undefined) return openSaved(saved, request, context);
  const { spec, from } = neededOf(request);
  const choice = {
    arch: request.arch ?? 'amd64',
    extras: extrasOf(request),
    os: systemsOf(request),
    kurlScripts: kurlScriptsOf(request, context),
  };
  if (choice.kurlScripts === undefined) await requireExecutable(choice.arch, request, context);
  const read = await readSpec(spec, context);
  const without = request.without ?? [];
  if (read.document === undefined) {
    const addons = read.installer.addons.filter(
      ({ name, specName }) => !without.includes(name) && !without.includes(specName),
    );
    const rest = { ...choice, bytes: read.bytes, installer: { ...read.installer, addons } };
    throw await allErrors(spec, read.diagnostics, async () =>
      planStore({ ...rest, from, given: NO_PACKAGES }, request, context),
    );
  }
  const { bytes, installer } = withoutAddons(read, without, spec);
  const extra = await extraImages(installer, request, context);
  let images: AsyncDisposable | undefined;
  const close = async (): Promise<void> => images?.[Symbol.asyncDispose]();
  const openExtra = async (): Promise<readonly GivenPackage[]> => {
    if (extra.length === 0) return [];
    const opened = await openImages(extra, request, context);
    images = opened;
    return [opened];
  };
  try {
    const open = await planStore({ ...choice, bytes, installer, from, given: openExtra }, request, context);
    noteWarnings(context.report, open.findings);
    if (open.plan.packages.length + open.plan.extras.length === 0) {
      const text = `${spec} has no add-on: the bundle has only curlew itself`;
      context.report({ type: 'note', level: 'warning', text });
    }
    for (const text of idleSystems(request, open.plan)) context.report({ type: 'note', level: 'warning', text });
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

/** Before anything is read or fetched; a dry run only says what the bundle will need. */
async function requireExecutable(arch: Arch, request: BundlePlanRequest, context: Context): Promise<void> {
  try {
    await findExecutable(arch, request, context);
  } catch (error) {
    if (request.dryRun !== true || !(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
    const text = `only a dry run is possible here: ${error.message}; ${error.hint ?? ''}`;
    context.report({ type: 'note', level: 'warning', text });
  }
}

const NO_PACKAGES = async (): Promise<readonly GivenPackage[]> => [];
const SETTINGS_HINT = 'correct the settings; if the spec of a site corrects them, use --allow-invalid-settings';

async function planStore(
  {
    from,
    bytes,
    installer,
    ...choice
  }: Omit<ReadSpec, 'document'> &
    Pick<PlanFromOptions, 'arch' | 'extras' | 'os' | 'kurlScripts' | 'given'> & { readonly from: string },
  request: BundlePlanRequest,
  context: Context,
): Promise<NamedPlan & Pick<PlannedSpec, 'findings'>> {
  const store = await openStoreFor(from, request, context, { create: false });
  const { signal } = context;
  const { release, allowDowngrade: allowOlder = false } = request;
  const trust = await trustOfStore(request, context, { address: store.address, allowOlder });
  const { onNotCurrent, result } = notingCurrent(context);
  const catalog = await catalogOf(store, { release, trust, onNotCurrent, signal });
  const settings = request.allowInvalidSettings === true ? 'allow' : 'strict';
  const executable = executableOpener(request, context);
  const options = { ...choice, spec: bytes, catalog, settings, executable, tool: toolVersion(), signal } as const;
  const open = await planFrom(store, installer, { ...options, settingsHint: SETTINGS_HINT });
  return { ...open, store: store.address, signed: trust !== undefined, ...result() };
}

/** Errors in the text of a spec, and of the rest what the store does not have or the packages refuse. */
async function allErrors(
  path: string,
  diagnostics: readonly Diagnostic[],
  plan: () => Promise<AsyncDisposable>,
): Promise<CurlewError> {
  const more = await planErrors(plan);
  return new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, {
    diagnostics: withFurther(diagnostics, more),
  });
}

async function planErrors(plan: () => Promise<AsyncDisposable>): Promise<readonly Diagnostic[]> {
  try {
    await using _ = await plan();
    return [];
  } catch (error) {
    // Other errors are reported after the spec is corrected.
    if (error instanceof CurlewError && error.code !== 'CANCELLED') return error.diagnostics;
    throw error;
  }
}

/** Options that a saved plan has fixed. */
const DECIDED = [
  'release',
  'arch',
  'with',
  'without',
  'os',
  'upgradeFrom',
  'layout',
  'kurlScripts',
  'image',
  'allowInvalidSettings',
] as const satisfies readonly (keyof BundlePlanRequest)[];

async function openSaved(path: string, request: BundlePlanRequest, context: Context): Promise<NamedPlan> {
  const other = DECIDED.find((name) => [request[name] ?? []].flat().some((value) => value !== false));
  if (request.spec !== undefined || other !== undefined) {
    const what =
      other === undefined
        ? 'the installer spec'
        : `--${other.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new CurlewError('USAGE', `curlew bundle: the plan of --from-plan already determines ${what}`);
  }
  const saved = await readBundlePlan(path, context);
  const from = request.from;
  if (from !== undefined) {
    const { arch, layout } = saved.plan.bundle;
    if (layout !== 'kurl') await requireExecutable(arch, request, context);
    const store = await openStoreFor(from, request, context, { create: false });
    // Older releases are allowed: the release was chosen when the plan was saved.
    const trust = await trustOfStore(request, context, { address: store.address, allowOlder: true });
    if (trust !== undefined) await requireSigned(saved, store, trust, context.signal);
    const options = { executable: executableOpener(request, context), signal: context.signal };
    return { ...(await openSavedPlan(saved, store, options)), store: saved.store, signed: trust !== undefined };
  }
  if (request.dryRun !== true)
    throw new CurlewError('USAGE', 'curlew bundle: specify the store of the packages with --from');
  const secrets = await secretsOfPlan(saved.plan, [], context.signal);
  return { ...saved, sources: [], secrets, signed: false, [Symbol.asyncDispose]: async () => undefined };
}

/** The packages in the plan must be those in the signed catalog of its release. */
async function requireSigned(
  { plan }: SavedBundlePlan,
  store: Store,
  trust: ReleaseTrust,
  signal: AbortSignal,
): Promise<void> {
  const { release } = plan.bundle;
  const catalog = await catalogOf(store, { release, trust, signal });
  const contents = new Map(
    listPackages(catalog).map((listed) => [storeKey.package(release, fileOf(listed)), listed.entry.toc]),
  );
  const ofStore = plan.sources.slice(0, plan.packages.length + plan.extras.length);
  const unsigned = ofStore.find(({ key, tocDigest }) => contents.get(key) !== tocDigest);
  if (unsigned === undefined) return;
  throw new CurlewError('SIGNATURE_INVALID', `cannot execute the plan: its ${unsigned.key} is not the signed one`, {
    hint: 'create the plan again, with --key',
  });
}

/** Reads a saved plan; `FILE_UNUSABLE` if it is invalid. */
export async function readBundlePlan(path: string, { cwd }: Pick<Context, 'cwd'>): Promise<SavedBundlePlan> {
  const text = await readGivenFile(resolve(cwd, path), PLAN_LIMIT);
  if (text !== undefined) return parseBundlePlan(text, path);
  throw new CurlewError('NOT_FOUND', `cannot read ${path}: no such file`, {
    hint: 'curlew bundle installer.yaml --from STORE --dry-run --out FILE writes one',
  });
}

function neededOf(request: BundlePlanRequest): { readonly spec: string; readonly from: string } {
  const { spec, from } = request;
  if (spec === undefined) {
    throw new CurlewError('USAGE', 'curlew bundle: specify one installer spec', {
      hint: 'curlew bundle installer.yaml …',
    });
  }
  if (from === undefined)
    throw new CurlewError('USAGE', 'curlew bundle: specify the store of the packages with --from');
  return { spec, from };
}

/** `document` is undefined if the text has errors; then `installer` is its readable part. */
async function readSpec(
  path: string,
  { cwd, report }: Context,
): Promise<
  ReadSpec | (Omit<ReadSpec, 'document'> & { readonly document: undefined } & Pick<ParsedInstaller, 'diagnostics'>)
> {
  const bytes = await readLimited(resolve(cwd, path), INSTALLER_LIMIT);
  const { installer, document, readable, diagnostics: read } = parseInstaller(path, bytes.toString('utf8'));
  const diagnostics = withoutNameGuesses(read);
  if (readable === undefined)
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec`, { diagnostics });
  if (installer === undefined || document === undefined)
    return { bytes, installer: readable, document: undefined, diagnostics };
  noteWarnings(report, diagnostics);
  return { bytes, installer, document };
}
