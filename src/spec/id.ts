/** The seven digits by which kURL's services identify an installer spec. Pure. */
import { createHash } from 'node:crypto';
import type { Installer } from './installer.ts';
import { isJsonObject, type Json } from '../formats/yaml/yaml.ts';

/** Hashed first, in this order, if they are not empty. */
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

/** Independent of the order of keys and of the name; versions count as written. */
export function installerId(installer: Installer): string {
  return installerHash(installer).slice(0, 7);
}

/** The whole hash, of which the id is the beginning: two specs with the same id but different hashes differ. */
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

/** The text that object-hash writes for the class of a map: plain objects share one prototype and one constructor. */
const CLASS = 'string:11:constructor:fn:string:8:[native]string:20:function-name:Object';
const PROTOTYPE = 'string:9:prototype:Undefined,string:9:__proto__:';

/** The SHA-1 of a value as in the npm package object-hash, in hex. */
export function objectHash(value: Json): string {
  return createHash('sha1').update(hashedText(value)).digest('hex');
}

function hashedText(value: Json): string {
  // Objects that occur again are written as their number: prototype and constructor, from the second map on.
  let count = 0;
  let prototype: number | undefined;
  const classText = (): string => {
    if (prototype !== undefined) return `${PROTOTYPE}${again(prototype)},${CLASS}${again(prototype + 1)}`;
    prototype = count;
    count += 2;
    return `${PROTOTYPE}object:3:${PROTOTYPE}Null,${CLASS}object:0:,,${CLASS}${again(prototype + 1)}`;
  };
  const serialize = (one: Json): string => {
    if (typeof one === 'string') return word(one);
    if (typeof one === 'number') return `number:${one}`;
    if (typeof one === 'boolean') return `bool:${one}`;
    count += 1;
    if (!isJsonObject(one)) return `array:${one.length}:${one.map(serialize).join('')}`;
    const keys = Object.keys(one).toSorted();
    const head = `object:${keys.length + 3}:${classText()},`;
    return head + keys.map((key) => `${word(key)}:${serialize(one[key] ?? '')},`).join('');
  };
  return serialize(value);
}

function again(number: number): string {
  return word(`[CIRCULAR:${number}]`);
}

function word(text: string): string {
  return `string:${text.length}:${text}`;
}
