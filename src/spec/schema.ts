/** The shape of an installer spec, for editors; `npm run docs` publishes it as docs/schemas/installer.schema.json. */
import { ADDON_NAMES, SECTION_NAMES, SETTINGS, type SettingKind } from './settings.ts';

interface Schema {
  readonly [key: string]: unknown;
}

const KINDS: Readonly<Record<SettingKind, Schema>> = {
  switch: { type: 'boolean' },
  text: { type: 'string' },
  integer: { type: 'integer' },
  texts: { type: 'array', items: { type: 'string' } },
  commands: { type: 'array', items: { type: 'array', items: { type: 'string' } } },
  document: { type: 'object' },
};

const VERSION = {
  description:
    'An exact version, "latest", "1.2.x" for the highest patch, or "channel:stable" for what that channel of the release has for the version of Kubernetes. With an empty version the add-on is not installed.',
  type: 'string',
  pattern: '^([A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?|channel:[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?$',
} as const;
const OVERRIDE = {
  description: 'A package to use instead of the store’s.',
  type: 'string',
  pattern: '^((https?|s3)://\\S+)?$',
} as const;
const COMMON: Readonly<Record<string, Schema>> = { version: VERSION, s3Override: OVERRIDE };

function settings(specName: string): Schema {
  const table = specName === 'ufw' ? 'ufwConfig' : specName;
  const own = SETTINGS.filter((setting) => setting.specName === table);
  return Object.fromEntries(
    own.map(({ field, kind, variable }) => {
      const about = variable === undefined ? {} : { description: `Variable ${variable}.` };
      return [field, field in COMMON ? COMMON[field] : { ...about, ...KINDS[kind] }];
    }),
  );
}

/** Unknown keys are not errors: add-ons outside kURL have their own settings. */
export const INSTALLER_SCHEMA: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Installer spec: which add-ons, which versions, which settings',
  type: 'object',
  required: ['apiVersion', 'kind', 'spec'],
  properties: {
    apiVersion: { enum: ['cluster.kurl.sh/v1beta1', 'kurl.sh/v1beta1'] },
    kind: { const: 'Installer' },
    metadata: { type: 'object', properties: { name: { type: 'string' } } },
    spec: {
      type: ['object', 'null'],
      properties: Object.fromEntries(
        [...SECTION_NAMES, ...ADDON_NAMES].map((name) => {
          const needed = SECTION_NAMES.includes(name) ? {} : { minProperties: 1 };
          return [name, { type: 'object', ...needed, properties: settings(name) }];
        }),
      ),
      additionalProperties: { type: 'object', required: ['version'], properties: COMMON },
    },
    status: {},
  },
};
