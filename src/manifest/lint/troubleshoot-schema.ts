/** JSON Schemas of Troubleshoot specs, built from the tables of their kinds. Pure. */
import {
  CLUSTER_ANALYZERS,
  CLUSTER_COLLECTORS,
  FORMS,
  HOST_ANALYZERS,
  HOST_COLLECTORS,
  type Kinds,
  type KindSettings,
} from './troubleshoot-kinds.ts';

export type Schema = Readonly<Record<string, unknown>>;

const API_VERSION = 'troubleshoot.sh/v1beta2';

const EXCLUDE: Schema = { type: ['boolean', 'string', 'null'] };

const OUTCOME: Schema = {
  type: ['object', 'null'],
  additionalProperties: false,
  properties: { when: FORMS.text, message: FORMS.text, uri: FORMS.text },
};

const OUTCOMES: Schema = {
  type: 'array',
  items: {
    type: 'object',
    minProperties: 1,
    maxProperties: 1,
    additionalProperties: false,
    properties: { pass: OUTCOME, warn: OUTCOME, fail: OUTCOME },
  },
};

function settingsSchema(settings: KindSettings, common: Schema, needed: readonly string[]): Schema {
  if (settings === 'open') return { type: 'object' };
  const properties: Record<string, unknown> = { ...common };
  const required = [...needed];
  for (const word of settings.split(' ').filter((one) => one !== '')) {
    const [, name = '', form = 'text', mark] = /^([^:!]+)(?::(\w+))?(!?)$/.exec(word) ?? [];
    properties[name] = Object.entries(FORMS).find(([known]) => known === form)?.[1] ?? FORMS.any;
    if (mark === '!') required.push(name);
  }
  return { type: 'object', properties, required, additionalProperties: false };
}

/** A list whose items have one key each, the name of a kind. */
function listOf(kinds: Kinds, common: Schema, needed: readonly string[]): Schema {
  const properties = Object.fromEntries(
    Object.entries(kinds).map(([kind, settings]) => [kind, settingsSchema(settings, common, needed)]),
  );
  const item = { type: 'object', minProperties: 1, maxProperties: 1, additionalProperties: false, properties };
  return { type: ['array', 'null'], items: item };
}

function collectors(kinds: Kinds): Schema {
  return listOf(kinds, { collectorName: FORMS.text, exclude: EXCLUDE }, []);
}

function analyzers(kinds: Kinds): Schema {
  const common = {
    checkName: FORMS.text,
    exclude: EXCLUDE,
    strict: EXCLUDE,
    annotations: FORMS.map,
    outcomes: { $ref: '#/definitions/outcomes' },
  };
  return listOf(kinds, common, ['outcomes']);
}

function specSchema(kind: string, spec: Schema): Schema {
  return {
    type: 'object',
    required: ['apiVersion', 'kind', 'spec'],
    properties: {
      apiVersion: { const: API_VERSION },
      kind: { const: kind },
      metadata: { type: ['object', 'null'] },
      spec: { type: 'object', additionalProperties: false, properties: spec },
    },
    additionalProperties: false,
    // Referenced: repeating it in each of fifty analyzers would take most of the schema's compile time.
    definitions: { outcomes: OUTCOMES },
  };
}

const CLUSTER: Schema = {
  uri: FORMS.text,
  collectors: collectors(CLUSTER_COLLECTORS),
  analyzers: analyzers(CLUSTER_ANALYZERS),
  remoteCollectors: FORMS.list,
};

/** By the `kind` of a document. */
export const SPEC_SCHEMAS = {
  HostPreflight: specSchema('HostPreflight', {
    collectors: collectors(HOST_COLLECTORS),
    analyzers: analyzers(HOST_ANALYZERS),
    remoteCollectors: FORMS.list,
    uri: FORMS.text,
  }),
  SupportBundle: specSchema('SupportBundle', {
    ...CLUSTER,
    afterCollection: FORMS.list,
    hostCollectors: collectors(HOST_COLLECTORS),
    hostAnalyzers: analyzers(HOST_ANALYZERS),
    runHostCollectorsInPod: FORMS.yesno,
  }),
  Preflight: specSchema('Preflight', { ...CLUSTER, uploadResultsTo: FORMS.text, uploadResultSpecs: FORMS.list }),
} as const satisfies Readonly<Record<string, Schema>>;

export type TroubleshootKind = keyof typeof SPEC_SCHEMAS;

export function specKindOf(kind: string | undefined): TroubleshootKind | undefined {
  return kind === 'HostPreflight' || kind === 'SupportBundle' || kind === 'Preflight' ? kind : undefined;
}
