/** Makes a new add-on: from nothing, from resources of Kubernetes, or from a chart. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { type Draft, draftAddon, homeOf, type Resources, SAMPLE_FILES, type SampleTexts } from './draft.ts';
import { assertNothingAt, putFolder } from './put-folder.ts';
import { readSource } from './source.ts';
import { surveyResources } from './survey.ts';
import { upstreamOf } from './upstream.ts';
import { type Words, wordsOf } from './words.ts';
import { nearest } from '../../core/nearest.ts';
import { type Hook, HOOK_NAMES } from '../hooks.ts';

export interface NewAddon {
  readonly name: string;
  /** The chart's own, or 0.1.0, when undefined. */
  readonly version: string | undefined;
  /** File of YAML, or a chart. */
  readonly from: string | undefined;
  readonly hooks: readonly string[];
  readonly upstream: string | undefined;
  readonly newest: string | undefined;
  /** Folder that holds `addons`, or will. */
  readonly root: string;
}

export interface MadeAddon {
  readonly name: string;
  readonly version: string;
  /** Absolute path of `addons/<name>`. */
  readonly folder: string;
  /** Below it, with `/`, in code units. */
  readonly files: readonly string[];
  readonly images: readonly string[];
  readonly settings: readonly string[];
  readonly namespace: string;
  /** What its author should look at. */
  readonly notes: readonly string[];
}

export interface NewOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the files that add-ons are made of. */
  readonly samples: string;
  readonly signal: AbortSignal;
}

const FIRST_VERSION = '0.1.0';
const SAMPLE_LIMIT = 1024 * 1024;
const CHART_NAME = /^[A-Za-z0-9._-]{1,200}$/;

/**
 * Makes `addons/<name>` with its first version, its template and what describes it. Throws `FILE_EXISTS` when anything is
 * there, `PACKAGE_INVALID` for names, `USAGE` for words, and what reading the source throws; then nothing was made.
 */
export async function makeAddon(given: NewAddon, { samples, ...options }: NewOptions): Promise<MadeAddon> {
  const { name, root, from } = given;
  wordsOf(name, given.version ?? FIRST_VERSION);
  const folder = join(root, 'addons', name);
  const hint = `curlew generate ${name} makes the next version; another add-on needs another name`;
  await assertFolder(root);
  await assertNothingAt(folder, hint);
  chooseHooks(given.hooks, { settings: false });
  const texts = await readSamples(samples);
  const source = from === undefined ? undefined : await readSource(from, name, options);
  const words = wordsOf(name, given.version ?? (source?.chart?.version || FIRST_VERSION));
  const text = source?.text ?? texts['starter.yaml'].replaceAll('sample-addon', homeOf(words, NO_SURVEY));
  const chart = source?.chart?.name ?? '';
  const resources: Resources = {
    text,
    survey: surveyResources(source?.path ?? 'starter.yaml', text),
    chart: CHART_NAME.test(chart) ? chart : '',
  };
  const upstream = upstreamOf(given.upstream, given.newest, source?.chart !== undefined);
  const hooks = (settings: boolean): ReturnType<typeof chooseHooks> => chooseHooks(given.hooks, { settings });
  const draft = draftAddon({ words, resources, upstream, hooks, samples: texts });
  await putFolder(root, `addons/${name}`, draft.files, (path) => path === 'template/generate.sh', {
    hint,
    signal: options.signal,
  });
  return {
    name,
    version: words.version,
    folder,
    files: [...draft.files.keys()].toSorted(),
    images: draft.images,
    settings: draft.settings.map(({ setting }) => setting),
    namespace: draft.namespace,
    notes: notesOf(words, draft, resources, upstream.upstream),
  };
}

const NO_SURVEY = { images: [], namespaces: [], madeNamespaces: [], deployments: [], homeless: 0 } as const;

async function readSamples(folder: string): Promise<SampleTexts> {
  try {
    await stat(folder);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`look at ${folder}`, error);
    throw new CurlewError('UNSUPPORTED', 'make an add-on: the curlew of a bundle cannot', {
      hint: 'install curlew from its package, which can',
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
    if (errnoOf(error) !== 'ENOENT') throw fileError(`look at ${root}`, error);
    throw new CurlewError('NOT_FOUND', `there is no folder ${root}`, { hint: 'make it first' });
  }
}

function notesOf({ name }: Words, draft: Draft, { survey }: Resources, upstream: string): readonly string[] {
  const notes: string[] = [];
  if (draft.images.length === 0) notes.push('no image was found in it: the Manifest is empty');
  if (survey.namespaces.length > 0 && survey.homeless > 0) {
    const many = survey.homeless === 1 ? '1 object names' : `${survey.homeless} objects name`;
    notes.push(`${many} no namespace and will be made in "default"`);
  }
  if (upstream === '') {
    notes.push(`addons/${name}/template/generate.sh does not know where upstream is: fill in UPSTREAM and NEWEST`);
  }
  return notes;
}

const USUAL: readonly Hook[] = ['install', 'already_applied', 'outro', 'pre_remove', 'leave', 'uninstall'];

/**
 * The hooks that words such as `install,join` name, and the one that installs; `all` are all of them. Without a word: what
 * an add-on of a cluster usually has, and a check of the settings if it takes any. Throws `USAGE`.
 */
export function chooseHooks(words: readonly string[], { settings }: { readonly settings: boolean }): ReadonlySet<Hook> {
  const names = words
    .flatMap((word) => word.split(','))
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (names.length === 0) return new Set(settings ? ['pre_init', ...USUAL] : USUAL);
  if (names.includes('all')) return new Set(HOOK_NAMES);
  const chosen = names.map((name) => {
    const hook = HOOK_NAMES.find((one) => one === name.replaceAll('-', '_'));
    if (hook !== undefined) return hook;
    const near = nearest(name, HOOK_NAMES);
    const hint = near === undefined ? `known are all, ${HOOK_NAMES.join(', ')}` : `did you mean ${near}?`;
    throw new CurlewError('USAGE', `--hooks: no hook is called "${name.slice(0, 60)}"`, { hint });
  });
  return new Set<Hook>(['install', ...chosen]);
}
