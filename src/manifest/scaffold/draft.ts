/** All files of a new add-on as texts. Pure. */
import { INSTALL_SH, MANIFEST } from '../../core/layout.ts';
import type { Hook } from '../hooks.ts';
import { fill, fillEach, type Filling } from './fill.ts';
import { imageLines } from './image-lines.ts';
import { replicaSettings, replicaWords, settingsSchema, type ReplicaSetting } from './settings.ts';
import { splitResources } from './split.ts';
import type { Survey } from './survey.ts';
import type { Upstream } from './upstream.ts';
import { labelOf, type Words } from './words.ts';

/** The files that a new add-on is made of, by their path below the folder they ship in. */
export type SampleTexts = Readonly<Record<SampleFile, string>>;
export type SampleFile = (typeof SAMPLE_FILES)[number];

export const SAMPLE_FILES = [
  'starter.yaml',
  'base/install.sh',
  'base/kustomization.yaml',
  'base/namespace.yaml',
  'base/tmpl-sample-replicas.yaml',
  'base/host-preflight.yaml',
  'base/troubleshoot.yaml',
  'template/generate.sh',
  'template/testgrid/sample-addon.yaml',
] as const;

export interface Resources {
  /** What the version ships, as it was given. */
  readonly text: string;
  readonly survey: Survey;
  /** Name of the chart that it was rendered from; empty when it was given as it is. */
  readonly chart: string;
}

export interface Draft {
  /** By path below `addons/<name>`, with `/`. Those that end in `.sh` and stand beside `base` can be run. */
  readonly files: ReadonlyMap<string, string>;
  readonly images: readonly string[];
  readonly settings: readonly ReplicaSetting[];
  readonly namespace: string;
}

/** Stands for the version in `template/base`. */
const VERSION = '__version__';
/** Namespaces that every cluster has. */
const ALWAYS_THERE: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease']);

/** Where most of an add-on lives: in the namespace that its objects name, else in the one they make, else in its own. */
export function homeOf({ name }: Words, { namespaces, madeNamespaces }: Survey): string {
  const own = namespaces.find((one) => !ALWAYS_THERE.has(one)) ?? namespaces[0];
  return own ?? madeNamespaces[0] ?? labelOf(name);
}

interface Given {
  readonly words: Words;
  readonly resources: Resources;
  readonly upstream: Upstream;
  readonly hooks: (settings: boolean) => ReadonlySet<Hook>;
  readonly samples: SampleTexts;
}

/** Puts an add-on together: `template/`, and its first version, which is made of it. */
export function draftAddon({ words, resources, upstream, hooks, samples }: Given): Draft {
  const { survey, text, chart } = resources;
  const namespace = homeOf(words, survey);
  const settings = replicaSettings(words, survey);
  const missing = [...new Set([namespace, ...survey.namespaces])].filter(
    (one) => !ALWAYS_THERE.has(one) && !survey.madeNamespaces.includes(one),
  );
  const chosen = hooks(settings.length > 0);
  const filling: Filling = {
    words: {
      'sample-addon': words.name,
      sampleAddon: words.specName,
      'sample-namespace': namespace,
      'sample-upstream': upstream.upstream,
      'sample-newest': upstream.newest,
      'sample-chart': chart,
    },
    holds: new Set<string>([
      ...chosen,
      ...(chosen.has('post_init') ? [] : ['wait']),
      ...(survey.namespaces.length === 0 ? ['transform'] : []),
      ...(missing.length > 0 ? ['namespace'] : []),
    ]),
    lists: { deployment: settings.map(replicaWords) },
  };
  const filled = (file: SampleFile): string => fill(samples[file], filling);
  const base = new Map<string, string>([
    [INSTALL_SH, filled('base/install.sh')],
    [MANIFEST, ''],
    ['host-preflight.yaml', filled('base/host-preflight.yaml')],
    ['kustomization.yaml', filled('base/kustomization.yaml')],
    ['schema.json', settingsSchema(settings)],
    ['troubleshoot.yaml', filled('base/troubleshoot.yaml')],
  ]);
  const patches = fillEach(samples['base/tmpl-sample-replicas.yaml'], settings.map(replicaWords), filling);
  for (const [index, { file }] of settings.entries()) base.set(`tmpl-${file}.yaml`, patches[index] ?? '');
  if (missing.length > 0) {
    const each = missing.map((one) => ({ 'sample-namespace': one }));
    base.set('namespace.yaml', fillEach(samples['base/namespace.yaml'], each, filling).join('---\n'));
  }
  const images = imageLines(survey.images);
  const files = new Map<string, string>();
  for (const [path, content] of base) {
    files.set(`template/base/${path}`, content);
    files.set(`${words.version}/${path}`, content.replaceAll(VERSION, words.version));
  }
  const { definitions, rest } = splitResources(text);
  files.set(`${words.version}/${MANIFEST}`, images.map((line) => `${line}\n`).join(''));
  files.set(`${words.version}/upstream.yaml`, rest);
  if (definitions !== '') files.set(`${words.version}/crds.yaml`, definitions);
  files.set('template/generate.sh', filled('template/generate.sh'));
  files.set(`template/testgrid/${words.name}.yaml`, filled('template/testgrid/sample-addon.yaml'));
  files.set('categories.json', categories(words));
  return { files, images, settings, namespace };
}

function categories({ name }: Words): string {
  return `${JSON.stringify({ name, requires: [], fulfills: [name], recommends: [] })}\n`;
}
