/** The shape of a saved plan; `npm run docs` publishes it as docs/schemas/plan-1.schema.json. */
import { Ajv, type ErrorObject } from 'ajv';
import type { Field, Fields } from '../../core/field.ts';
import { optionName } from '../../core/request.ts';

/** Longer than any text that curlew writes into one field. */
const TEXT = { type: 'string', maxLength: 4096 } as const;
const COUNT = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const DIGEST = { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' } as const;
const RUN_ID = { type: 'string', pattern: '^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$' } as const;

interface Schema {
  readonly [key: string]: unknown;
}

/** An object with these fields; fields whose name ends in `?` are optional. */
function object(fields: Readonly<Record<string, Schema>>, about?: string): Schema {
  const names = Object.keys(fields);
  return {
    ...(about === undefined ? {} : { description: about }),
    type: 'object',
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
    properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name.replace(/\?$/, ''), field])),
  };
}

function list(items: Schema, about?: string): Schema {
  return { ...(about === undefined ? {} : { description: about }), type: 'array', items };
}

const REF = {
  tree: { enum: ['addons', 'packages'] },
  name: { $ref: '#/definitions/name' },
  version: { $ref: '#/definitions/version' },
};

function optionSchema({ takes, names }: Field): Schema {
  if (takes === 'nothing') return { const: true };
  if (takes === 'many') return { type: 'array', items: TEXT };
  return names === 'path' ? { type: 'string', pattern: '^/', maxLength: 4096 } : TEXT;
}

const basis = object(
  {
    tool: TEXT,
    packages: list(object({ ...REF, digest: DIGEST, settings: DIGEST }), 'By name.'),
    variables: { ...DIGEST, description: 'Digest of all variables for hooks.' },
    records: { ...DIGEST, description: 'Digest of the extracted and applied records.' },
    'lastRun?': RUN_ID,
    'cluster?': { ...TEXT, description: 'Address of the cluster that hooks of a trial change.' },
  },
  'Everything that the plan depends on: if any of it has changed, the plan is rejected.',
);

const plan = object({
  format: { const: 1 },
  kind: { enum: ['install', 'join', 'upgrade'] },
  'continues?': object(
    { run: RUN_ID, done: list(object({ action: TEXT, run: RUN_ID })) },
    'The run that this one resumes, and the actions that it has done.',
  ),
  addons: list(
    object({
      ref: object(REF),
      digest: DIGEST,
      settings: DIGEST,
      mode: { type: 'string', maxLength: 100 },
      because: TEXT,
      'replaces?': { $ref: '#/definitions/version' },
      hasInstallScript: { type: 'boolean' },
    }),
    'In the order of the run.',
  ),
  actions: list(
    object({
      id: TEXT,
      kind: { type: 'string', maxLength: 100 },
      addon: { $ref: '#/definitions/name' },
      because: TEXT,
      'hook?': { type: 'string', maxLength: 100 },
      'function?': TEXT,
      'words?': list(TEXT, 'Arguments of the function.'),
      'limit?': { ...COUNT, description: 'Seconds.' },
    }),
    'In the order of the run.',
  ),
});

const mount = object({
  mountPoint: TEXT,
  paths: list(TEXT),
  total: COUNT,
  free: COUNT,
  peak: { ...COUNT, description: 'Bytes that the run uses at its peak.' },
  reserve: { ...COUNT, description: 'Bytes that must stay free even then.' },
  short: { ...COUNT, description: 'Missing bytes.' },
  'inodes?': object({ peak: COUNT, free: COUNT, short: COUNT }),
  needs: list(object({ use: TEXT, addon: { $ref: '#/definitions/name' }, bytes: COUNT, files: COUNT, because: TEXT })),
});

const host = object(
  {
    disk: object({ fits: { type: 'boolean' }, mounts: list(mount) }),
    ports: list(
      object({
        addon: { $ref: '#/definitions/name' },
        protocol: { enum: ['tcp', 'udp'] },
        port: { type: 'integer', minimum: 1, maximum: 65_535 },
        what: TEXT,
        state: { enum: ['free', 'in use'] },
        'process?': TEXT,
        conflict: { type: 'boolean' },
      }),
    ),
    images: object({
      'runtime?': { enum: ['containerd', 'docker'] },
      'skipped?': TEXT,
      addons: list(object({ addon: { $ref: '#/definitions/name' }, images: COUNT, missing: list(TEXT), bytes: COUNT })),
    }),
    'memory?': object({ total: COUNT, available: COUNT }),
  },
  'The state of the machine when the plan was created; it is not compared.',
);

/** The schema of plans of a request with these fields. */
export function planSchema(fields: Fields): Schema {
  const saved = Object.entries(fields).filter(([, { plan: part }]) => part !== undefined);
  const words = {
    description: 'Command-line options that determine the plan; paths are absolute.',
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(saved.map(([name, field]) => [optionName(name), optionSchema(field)])),
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'A saved plan of a run, format 1',
    ...object({ format: { const: 1 }, words, basis, plan, host }),
    definitions: DEFINITIONS,
  };
}

const DEFINITIONS = {
  name: {
    type: 'string',
    pattern: '^[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?$',
    not: { pattern: '\\.\\.' },
  },
  version: { type: 'string', pattern: '^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$', not: { pattern: '\\.\\.' } },
};

/** The first problem of a value that should be a saved plan of a request with these fields; undefined if it is valid. */
export function planProblem(value: unknown, fields: Fields): string | undefined {
  const fits = new Ajv({ strict: true, strictTypes: false }).compile(planSchema(fields));
  if (fits(value)) return undefined;
  const [error] = fits.errors ?? [];
  return error === undefined ? 'it does not match the schema' : described(error);
}

function described({ instancePath, message = '', keyword, params }: ErrorObject): string {
  const place = instancePath === '' ? 'the document' : instancePath;
  const extra = keyword === 'additionalProperties' ? `: ${JSON.stringify(params['additionalProperty'])}` : '';
  return `${place} ${message}${extra}`;
}
