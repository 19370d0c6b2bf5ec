/** Creates all files of a new add-on as texts. Pure. */
import { INSTALL_SH, MANIFEST } from '../../core/layout.ts';
import type { Hook } from '../hooks.ts';
import { imageLines } from './image-lines.ts';
import { fillText, fillEach, type Filling, type Replacements } from './fill.ts';
import type { Survey } from './survey.ts';
import type { ChartUpstream } from './upstream.ts';
import { labelOf, settingName, type AddonNames } from './names.ts';
import { variableName } from '../../spec/settings.ts';

/** The template files of a new add-on, by their path in the samples folder. */
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
  /** The resources of the version, as given. */
  readonly text: string;
  readonly survey: Survey;
  /** Name of the chart that rendered it; empty without a chart. */
  readonly chart: string;
}

export interface Draft {
  /** By path relative to `addons/<name>`, with `/`. Files that end in `.sh` next to `base` are executable. */
  readonly files: ReadonlyMap<string, string>;
  readonly images: readonly string[];
  readonly settings: readonly ReplicaSetting[];
  readonly namespace: string;
}

/** The version's placeholder in `template/base`. */
const VERSION = '__version__';
/** Namespaces that every cluster has. */
const DEFAULT_NAMESPACES: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease']);

/** The main namespace of an add-on: one that its objects name, or else one that they create, or else one with its name. */
export function mainNamespace({ name }: AddonNames, { namespaces, createdNamespaces }: Survey): string {
  const own = namespaces.find((one) => !DEFAULT_NAMESPACES.has(one)) ?? namespaces[0];
  return own ?? createdNamespaces[0] ?? labelOf(name);
}

interface Given {
  readonly names: AddonNames;
  readonly resources: Resources;
  readonly upstream: ChartUpstream;
  readonly hooks: (settings: boolean) => ReadonlySet<Hook>;
  /** With `template/`, which generates the next versions. */
  readonly hasTemplate: boolean;
  readonly samples: SampleTexts;
}

/** Drafts an add-on: its first version, and the template that generates it. */
export function draftAddon({ names, resources, upstream, hooks, hasTemplate, samples }: Given): Draft {
  const { survey, text, chart } = resources;
  const namespace = mainNamespace(names, survey);
  const settings = replicaSettings(names, survey);
  const missing = [...new Set([namespace, ...survey.namespaces])].filter(
    (one) => !DEFAULT_NAMESPACES.has(one) && !survey.createdNamespaces.includes(one),
  );
  const chosen = hooks(settings.length > 0);
  const filling: Filling = {
    words: {
      'sample-addon': names.name,
      sampleAddon: names.specName,
      'sample-namespace': namespace,
      'sample-upstream': upstream.upstream,
      'sample-newest': upstream.newest,
      'sample-chart': chart,
    },
    conditions: new Set<string>([
      ...chosen,
      ...(chosen.has('post_init') ? [] : ['wait']),
      ...(survey.namespaces.length === 0 ? ['transform'] : []),
      ...(missing.length > 0 ? ['namespace'] : []),
      settings.length > 0 ? 'settings' : 'plain',
    ]),
    lists: { deployment: settings.map(replicaWords) },
  };
  const filled = (file: SampleFile): string => fillText(samples[file], filling);
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
    if (hasTemplate) files.set(`template/base/${path}`, content);
    files.set(`${names.version}/${path}`, content.replaceAll(VERSION, names.version));
  }
  const { definitions, rest } = splitResources(text);
  files.set(`${names.version}/${MANIFEST}`, images.map((line) => `${line}\n`).join(''));
  files.set(`${names.version}/upstream.yaml`, rest);
  if (definitions !== '') files.set(`${names.version}/crds.yaml`, definitions);
  if (hasTemplate) {
    files.set('template/generate.sh', filled('template/generate.sh'));
    files.set(`template/testgrid/${names.name}.yaml`, filled('template/testgrid/sample-addon.yaml'));
    files.set('categories.json', categories(names));
  }
  return { files, images, settings, namespace };
}

function categories({ name }: AddonNames): string {
  return `${JSON.stringify({ name, requires: [], fulfills: [name], recommends: [] })}\n`;
}

export interface SplitResources {
  /** Empty if there are none. */
  readonly definitions: string;
  readonly rest: string;
}

const START = /^---([ \t]|$)/;
const DEFINITION = /^kind:[ \t]*["']?CustomResourceDefinition["']?[ \t]*$/;
const BLANK = /^[ \t]*(?:#.*)?$/;

/**
 * Splits by lines, like the generator of a template: leaves out documents with only comments, and removes CRs and a byte
 * order mark.
 */
export function splitResources(text: string): SplitResources {
  const parts: Record<keyof SplitResources, string[]> = { definitions: [], rest: [] };
  let document: string[] = [];
  const flush = (): void => {
    if (!document.every((line) => BLANK.test(line))) {
      const part = document.some((line) => DEFINITION.test(line)) ? parts.definitions : parts.rest;
      part.push('---', ...document);
    }
    document = [];
  };
  const lines = text.replace(/^\u{FEFF}/u, '').split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    if (!START.test(line)) {
      document.push(line);
      continue;
    }
    flush();
    const content = line.replace(/^---[ \t]*/, '');
    if (content !== '' && !content.startsWith('#')) document.push(content);
  }
  flush();
  const joined = (part: readonly string[]): string => part.map((line) => `${line}\n`).join('');
  return { definitions: joined(parts.definitions), rest: joined(parts.rest) };
}

export interface ReplicaSetting {
  /** Name in an installer spec. */
  readonly setting: string;
  /** Name in install.sh. */
  readonly variable: string;
  readonly deployment: string;
  /** Namespace of the Deployment: a patch matches only the same namespace. */
  readonly namespace: string | undefined;
  /** Base name of its files: `webhook-replicas`. */
  readonly file: string;
}

/** Add-ons with more Deployments get no such settings. */
const MAX_WORKLOADS = 8;

/** One setting for each Deployment; `replicas` if there is only one. */
function replicaSettings(names: AddonNames, { deployments }: Survey): readonly ReplicaSetting[] {
  if (deployments.length > MAX_WORKLOADS) return [];
  const settings = new Map<string, ReplicaSetting>();
  for (const { name, namespace } of deployments) {
    const bare = name.startsWith(`${names.name}-`) ? name.slice(names.name.length + 1) : name;
    const setting = deployments.length === 1 ? 'replicas' : settingName(bare, 'Replicas');
    const variable = variableName(names.specName, setting);
    if (variable === undefined || settings.has(variable)) continue;
    const file = deployments.length === 1 ? 'replicas' : `${bare}-replicas`;
    settings.set(variable, { setting, variable, deployment: name, namespace, file });
  }
  return [...settings.values()];
}

function replicaWords({ setting, variable, deployment, namespace, file }: ReplicaSetting): Replacements {
  return {
    sampleReplicas: setting,
    SAMPLE_REPLICAS: variable,
    'sample-deployment': deployment,
    '\n  namespace: sample-deployment-namespace': namespace === undefined ? '' : `\n  namespace: ${namespace}`,
    'sample-replicas': file,
  };
}

/** The JSON Schema of all settings. */
function settingsSchema(settings: readonly ReplicaSetting[]): string {
  const replicas = settings.map(({ setting, deployment }) => [
    setting,
    { type: 'integer', minimum: 0, maximum: 999, description: `pods of the Deployment ${deployment}` },
  ]);
  const schema = {
    type: 'object',
    properties: {
      version: { type: 'string', description: 'version of the add-on' },
      s3Override: { type: 'string', description: 'address of a package to use instead of the store’s' },
      ...Object.fromEntries(replicas),
    },
    required: ['version'],
    additionalProperties: false,
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
