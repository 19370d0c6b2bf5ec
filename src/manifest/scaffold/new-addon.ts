/** Creates a new add-on: from nothing, from Kubernetes resources, or from a chart. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AddonVersion } from '../../core/ref.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { type Draft, draftAddon, mainNamespace, type Resources, SAMPLE_FILES, type SampleTexts } from './draft.ts';
import { assertNothingAt, createAddonFolder } from './create-folder.ts';
import { readAddonSource, type ReadOptions } from './addon-source.ts';
import { surveyResources } from './survey.ts';
import { upstreamOf } from './upstream.ts';
import { type AddonNames, namesOf } from './names.ts';
import { nearest } from '../../core/nearest.ts';
import { type Hook, HOOK_NAMES } from '../hooks.ts';

export interface NewAddon {
  readonly name: string;
  /** Default: the chart's version, or 0.1.0. */
  readonly version: string | undefined;
  /** YAML file or chart. */
  readonly from: string | undefined;
  readonly hooks: readonly string[];
  readonly upstream: string | undefined;
  readonly newest: string | undefined;
  /** Also create the template of the next versions. */
  readonly hasTemplate: boolean;
  /** Folder of `addons`, which may not exist yet. */
  readonly root: string;
}

export interface MadeAddon extends AddonVersion {
  /** Absolute path of `addons/<name>`. */
  readonly folder: string;
  /** Relative to it, with `/`, sorted in code units. */
  readonly files: readonly string[];
  readonly images: readonly string[];
  readonly settings: readonly string[];
  readonly namespace: string;
  /** Notes for its author. */
  readonly notes: readonly string[];
}

export interface NewOptions extends ReadOptions {
  /** Folder of the sample files. */
  readonly samples: string;
}

const FIRST_VERSION = '0.1.0';
const SAMPLE_LIMIT = 1024 * 1024;
const CHART_NAME = /^[A-Za-z0-9._-]{1,200}$/;

/**
 * Creates `addons/<name>` with its first version, and with its template if it is to have one. Throws `FILE_EXISTS` if anything exists
 * there, `PACKAGE_INVALID` for names, `USAGE` for arguments, and errors of reading the source; then nothing is created.
 */
export async function makeAddon(addon: NewAddon, { samples, ...options }: NewOptions): Promise<MadeAddon> {
  const { name, root, from } = addon;
  namesOf(name, addon.version ?? FIRST_VERSION);
  const folder = join(root, 'addons', name);
  const hint =
    `create the next version with curlew generate ${name} if it has a template, or else copy the folder of a version ` +
    `and change the version in its files, or choose another name`;
  await assertFolder(root);
  await assertNothingAt(folder, hint);
  chooseHooks(addon.hooks, { settings: false });
  const texts = await readSamples(samples);
  const source = from === undefined ? undefined : await readAddonSource(from, name, options);
  const names = namesOf(name, addon.version ?? (source?.chart?.version || FIRST_VERSION));
  const text = source?.text ?? texts['starter.yaml'].replaceAll('sample-addon', mainNamespace(names, NO_SURVEY));
  const chart = source?.chart?.name ?? '';
  const resources: Resources = {
    text,
    survey: surveyResources(source?.path ?? 'starter.yaml', text),
    chart: CHART_NAME.test(chart) ? chart : '',
  };
  const upstream = upstreamOf(addon.upstream, addon.newest, source?.chart !== undefined);
  const hooks = (settings: boolean): ReturnType<typeof chooseHooks> => chooseHooks(addon.hooks, { settings });
  const draft = draftAddon({ names, resources, upstream, hooks, hasTemplate: addon.hasTemplate, samples: texts });
  await createAddonFolder(root, `addons/${name}`, draft.files, (path) => path === 'template/generate.sh', {
    hint,
    signal: options.signal,
  });
  return {
    name,
    version: names.version,
    folder,
    files: [...draft.files.keys()].toSorted(),
    images: draft.images,
    settings: draft.settings.map(({ setting }) => setting),
    namespace: draft.namespace,
    notes: notesOf(names, draft, resources, addon.hasTemplate && upstream.upstream === ''),
  };
}

const NO_SURVEY = { images: [], namespaces: [], createdNamespaces: [], deployments: [], homeless: 0 } as const;

async function readSamples(folder: string): Promise<SampleTexts> {
  try {
    await stat(folder);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`read ${folder}`, error);
    throw new CurlewError('UNSUPPORTED', 'cannot create an add-on: not supported by the curlew of a bundle', {
      hint: 'install curlew from its package',
    });
  }
  const read = SAMPLE_FILES.map(async (file) => {
    return [file, (await readLimited(join(folder, file), SAMPLE_LIMIT)).toString()] as const;
  });
  return Object.fromEntries(await Promise.all(read)) as SampleTexts;
}

async function assertFolder(root: string): Promise<void> {
  try {
    if (!(await stat(root)).isDirectory()) throw new CurlewError('FILE_UNUSABLE', `${root} is not a folder`);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`read ${root}`, error);
    throw new CurlewError('NOT_FOUND', `the folder ${root} does not exist`, { hint: 'create it first' });
  }
}

function notesOf({ name }: AddonNames, draft: Draft, { survey }: Resources, needsUpstream: boolean): readonly string[] {
  const notes: string[] = [];
  if (draft.images.length === 0) notes.push('no image was found: the Manifest is empty');
  if (survey.namespaces.length > 0 && survey.homeless > 0) {
    const many = survey.homeless === 1 ? '1 object names' : `${survey.homeless} objects name`;
    notes.push(`${many} no namespace and will be created in "default"`);
  }
  if (needsUpstream) {
    notes.push(`addons/${name}/template/generate.sh has no upstream: fill in UPSTREAM and NEWEST`);
  }
  return notes;
}

const DEFAULT_HOOKS: readonly Hook[] = ['install', 'already_applied', 'outro', 'pre_remove', 'leave', 'uninstall'];

/**
 * The hooks of arguments such as `install,join`, plus the install hook; `all` means all of them. Without an argument: the
 * usual hooks of an add-on in a cluster, and a check of the settings if it has any. Throws `USAGE`.
 */
export function chooseHooks(args: readonly string[], { settings }: { readonly settings: boolean }): ReadonlySet<Hook> {
  const names = args
    .flatMap((arg) => arg.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) return new Set(settings ? ['pre_init', ...DEFAULT_HOOKS] : DEFAULT_HOOKS);
  if (names.includes('all')) return new Set(HOOK_NAMES);
  const chosen = names.map((name) => {
    const hook = HOOK_NAMES.find((one) => one === name.replaceAll('-', '_'));
    if (hook !== undefined) return hook;
    const near = nearest(name, HOOK_NAMES);
    const hint = near === undefined ? `known: all, ${HOOK_NAMES.join(', ')}` : `did you mean ${near}?`;
    throw new CurlewError('USAGE', `--hooks: unknown hook "${name.slice(0, 60)}"`, { hint });
  });
  return new Set<Hook>(['install', ...chosen]);
}
