/** The seven digits by which kURL's services know an installer spec (kurl.md 4.2). Pure. */
import { createHash } from 'node:crypto';
import type { Installer } from './installer.ts';
import { objectHash } from './object-hash.ts';
import type { Json } from '../formats/yaml/yaml.ts';

/** Counted first, in this order, and only when they say something. */
const FIRST: readonly string[] = [
  'kubernetes_version',
  'weave_version',
  'rook_version',
  'contour_version',
  'registry_version',
  'prometheus_version',
  'kotsadm_version',
  'kotsadm_applicationSlug',
];

/** The same for another order of keys or another name; versions count as they are written. */
export function installerId(installer: Installer): string {
  return installerHash(installer).slice(0, 7);
}

/** What the id is the beginning of: two specs of one id and two hashes are different specs. */
export function installerHash(installer: Installer): string {
  const fields = new Map<string, string>();
  for (const { specName, settings } of installer.sections) addFields(fields, specName, settings);
  for (const { specName, requested, s3Override, settings } of installer.addons) {
    const override = s3Override === undefined ? {} : { s3Override };
    addFields(fields, specName, { version: requested, ...override, ...settings });
  }
  const first = FIRST.flatMap((name) => {
    const value = fields.get(name) ?? '';
    return value === '' ? [] : [`${name}=${value}`];
  });
  const others = [...fields].filter(([name]) => !FIRST.includes(name)).map(([name, value]) => `${name}=${value}`);
  // The order of JavaScript: by code unit.
  const text = [...first, ...others.toSorted()].join('');
  return createHash('sha256').update(text).digest('hex');
}

function addFields(fields: Map<string, string>, specName: string, settings: Readonly<Record<string, Json>>): void {
  for (const [field, value] of Object.entries(settings)) {
    fields.set(`${specName}_${field}`, typeof value === 'object' ? objectHash(value) : String(value));
  }
}
