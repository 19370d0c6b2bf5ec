/** The seven digits by which kURL's services know an installer spec (kurl.md 4.2). Pure. */
import { createHash } from 'node:crypto';
import type { Installer } from './installer.ts';
import { isJsonObject, type Json } from '../formats/yaml/yaml.ts';

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

/** What it writes of the class of every map: plain objects have one prototype and one constructor. */
const CLASS = 'string:11:constructor:fn:string:8:[native]string:20:function-name:Object';
const PROTOTYPE = 'string:9:prototype:Undefined,string:9:__proto__:';

/** SHA-1, in hex. */
export function objectHash(value: Json): string {
  return createHash('sha1').update(hashedText(value)).digest('hex');
}

function hashedText(value: Json): string {
  // What is met again is only named, by its number: the prototype and its constructor, from the second map on.
  let met = 0;
  let prototype: number | undefined;
  const classText = (): string => {
    if (prototype !== undefined) return `${PROTOTYPE}${again(prototype)},${CLASS}${again(prototype + 1)}`;
    prototype = met;
    met += 2;
    return `${PROTOTYPE}object:3:${PROTOTYPE}Null,${CLASS}object:0:,,${CLASS}${again(prototype + 1)}`;
  };
  const textOf = (one: Json): string => {
    if (typeof one === 'string') return word(one);
    if (typeof one === 'number') return `number:${one}`;
    if (typeof one === 'boolean') return `bool:${one}`;
    met += 1;
    if (!isJsonObject(one)) return `array:${one.length}:${one.map(textOf).join('')}`;
    const keys = Object.keys(one).toSorted();
    const head = `object:${keys.length + 3}:${classText()},`;
    return head + keys.map((key) => `${word(key)}:${textOf(one[key] ?? '')},`).join('');
  };
  return textOf(value);
}

function again(number: number): string {
  return word(`[CIRCULAR:${number}]`);
}

function word(text: string): string {
  return `string:${text.length}:${text}`;
}
