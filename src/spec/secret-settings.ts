/** Which settings of an add-on are secret and must be hidden where others can read them. Pure. */
import { maskSecrets, redact } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { REDACTED, type Secret, secretsIn } from '../core/secret.ts';

type Entry = Readonly<Record<string, unknown>>;

/**
 * Classifies a name by its words: `rootPassword`, `s3_secret_key`. Names about a secret that do not contain one (`tokenTTL`,
 * `existingSecret`) are excluded. In doubt a setting is secret; the schema of a package can override that
 * (`writeOnly: false`).
 */
const SECRET = new RegExp(
  [
    '(?<!by|com)pass\\b|pass(?:words?|wd|phrase|code)\\b|\\bpwd?\\b|rootpw|pass ?keys?\\b|htpasswd|secrets?\\b|tokens?\\b',
    'credentials?\\b|\\bcreds\\b|\\bauthorization\\b|\\bbasic ?auth\\b|\\bbearer\\b|\\bjwt\\b|\\bpsk\\b|\\bdsn\\b|keytab|connection ?string',
    '(?:access|secret|private|api|encryption|encrypt|decryption|signing|sign|shared|account|storage|master|session|tls|ssl|ssh|cert|licen[cs]e|client|server|host|hmac|aes|gpg|pgp|deploy|gossip|join|service|cookie|auth|sas|unseal|recovery|webhook) ?keys?\\b',
  ].join('|'),
);
const HARMLESS =
  /^existing |pull ?secrets?$|ca ?hash$|\b(?:names?|refs?|references?|namespace|files?|filename|paths?|dir|directory|folder|ttl|length|size|policy|type|kind|class|mode|enabled|disabled|required|issuer|ur[il]s?|endpoint|address|host|port|region|expiry|expiration|expires|lifetime|duration|timeout|days|hours|seconds|rotation|interval|count|version|algorithm|ids?|field|provider|audience|store|backend|format)$/;
/** The field of a registry's credentials in the files of container engines. */
const ENGINE_AUTH = /^(?:auth|identity ?token)$/;

function separateWords(name: string): string {
  const apart = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  return apart
    .split(/[^A-Za-z]+/)
    .filter((word) => word !== '')
    .join(' ')
    .toLowerCase();
}

/** True if the name of a setting, or of a field in one, indicates a secret value. */
export function isSecretName(name: string): boolean {
  const words = separateWords(name.slice(0, 200));
  return (SECRET.test(words) || ENGINE_AUTH.test(words)) && !HARMLESS.test(words);
}

/** Texts and numbers below names of secrets, at any depth, which programs may print. */
export function namedSecrets(value: unknown): readonly Secret[] {
  if (Array.isArray(value)) return value.flatMap(namedSecrets);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, one]) => (isSecretName(name) ? secretsIn(one) : namedSecrets(one)));
}

/** The value of a setting, or of its variable, for display: an empty value is not secret. */
export function shownText(name: string, text: string): string {
  return text !== '' && (isSecretName(name) || containsSecret(text)) ? REDACTED : redact(text);
}

/** A line of a spec, by its number from 0, for display; columns up to the secret do not move. */
export function shownLine(lines: readonly string[], at: number): string {
  const line = lines[at] ?? '';
  const [, before = '', name = ''] = /^([\s"'{,-]*([\w.-]{1,80})["']?\s*[:=]\s*)\S/.exec(line) ?? [];
  if (isSecretName(name)) return `${before}${REDACTED}`;
  return containsSecret(line) || isBelowSecret(lines, at) ? REDACTED : maskSecrets(line);
}

function isBelowSecret(lines: readonly string[], at: number): boolean {
  const depthOf = (line: string): number => line.search(/[^\s-]/);
  let depth = depthOf(lines[at] ?? '');
  for (let above = at - 1; above >= 0 && depth > 0; above -= 1) {
    const line = lines[above] ?? '';
    const own = depthOf(line);
    if (own === -1 || own >= depth) continue;
    depth = own;
    const [, name = ''] = /^[\s"'{,-]*([\w.-]{1,80})["']?\s*:/.exec(line) ?? [];
    if (isSecretName(name)) return true;
  }
  return false;
}

/** Finds a private key, a Kubernetes Secret, or a field with the name of a secret in YAML, JSON, TOML or similar. */
function containsSecret(text: string): boolean {
  if (text.includes('PRIVATE KEY-----') || /\bkind["']?[ \t]*:[ \t]*["']?Secret\b/.test(text)) return true;
  // The comment in YAML is on the line before its value.
  for (const [, name = ''] of text.matchAll(
    /^[ \t]*(?:- )?["']?([A-Za-z][\w.-]{0,80})["']?:[ \t]*\r?\n[ \t]*[^\s]/gm,
  )) {
    if (isSecretName(name)) return true;
  }
  for (const [, name = ''] of text.matchAll(
    /\b([A-Za-z][\w.-]{0,80})(?:["']?[ \t]*=|["'][ \t]*:|:[ \t])[ \t]*["']?[^\s"']/g,
  )) {
    if (isSecretName(name)) return true;
  }
  // Options of a command line.
  for (const [, name = ''] of text.matchAll(/(?<!\S)--?([A-Za-z][\w-]{0,80})[ \t]+[^\s-]/g)) {
    if (isSecretName(name)) return true;
  }
  return false;
}

interface Place {
  /** Schemas of the value; several if they are composed. */
  readonly schemas: readonly Entry[];
  /** The value, or a value that contains it, is secret by its name or schema. */
  readonly secret: boolean;
}

/** Deeper values are not inspected: they count as secret. */
const MAX_DEPTH = 32;
const HIDDEN = Symbol('hidden');

/**
 * An add-on's entry in the spec without its secrets, and whether it had any. Secrets are values that the package's JSON Schema
 * marks (`format: password`, `writeOnly: true`), values with a secret name that are not marked `writeOnly: false`, texts that
 * contain a private key or a field with a secret name, and user info and query of URLs. Such fields are left out; empty texts,
 * booleans and null are never secret.
 */
export function withoutSecrets(entry: Entry, schema: unknown): { readonly shown: Entry; readonly hidden: boolean } {
  const result = { hidden: false };
  const { version, ...settings } = entry;
  const shown = shownMap(
    settings,
    { schemas: expanded([schema], schema), secret: false },
    { root: schema, depth: 0, result },
  );
  return { shown: version === undefined ? shown : { version, ...shown }, hidden: result.hidden };
}

/** Longer values are cut. */
const MAX_VALUE = 60;

/**
 * The value at these steps of an add-on's entry in the spec, for a message: `"three"`, `3`, `a list`; `something else` for one that is
 * secret.
 */
export function describedValue(entry: Entry, steps: readonly string[], schema: unknown): string {
  const valueIn = (whole: unknown): unknown =>
    steps.reduce(
      (value, step) => (isObject(value) || Array.isArray(value) ? (value as Entry)[step] : undefined),
      whole,
    );
  const value = valueIn(entry);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'a map';
  const isShown = valueIn(withoutSecrets(entry, schema).shown) === value;
  if (!isShown || (typeof value === 'string' && redact(value) !== value)) return 'something else';
  if (typeof value !== 'string') return String(value);
  return value.length > MAX_VALUE ? `${JSON.stringify(value.slice(0, MAX_VALUE))}…` : JSON.stringify(value);
}

interface Walk {
  readonly root: unknown;
  readonly depth: number;
  readonly result: { hidden: boolean };
}

function shownMap(map: Entry, place: Place, walk: Walk): Entry {
  const rows = Object.entries(map).map(([name, value]) => {
    const schemas = expanded(
      place.schemas.flatMap((one) => propertyOf(one, name)),
      walk.root,
    );
    const harmless = HARMLESS.test(separateWords(name.slice(0, 200)));
    const secret = marked(schemas) ?? (isSecretName(name) || isVariableValue(map, name) || (place.secret && !harmless));
    return [name, shownValue(value, { schemas, secret }, walk)] as const;
  });
  return Object.fromEntries(rows.filter(([, value]) => value !== HIDDEN));
}

/** True for `value` in `{ name: DB_PASSWORD, value: x }`, Kubernetes' form of variables. */
function isVariableValue(map: Entry, field: string): boolean {
  const variableNames = [map['name'], map['key']];
  return field === 'value' && variableNames.some((name) => typeof name === 'string' && isSecretName(name));
}

function shownValue(value: unknown, place: Place, walk: Walk): unknown {
  const { secret, schemas } = place;
  const hide = (): typeof HIDDEN => {
    walk.result.hidden = true;
    return HIDDEN;
  };
  if (value === '' || value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') {
    if (secret || containsSecret(value)) return hide();
    const text = redact(value);
    if (text !== value) walk.result.hidden = true;
    return text;
  }
  if (typeof value !== 'object') return secret ? hide() : value;
  if (walk.depth >= MAX_DEPTH) return hide();
  const deeper = { ...walk, depth: walk.depth + 1 };
  if (!Array.isArray(value)) return shownMap(value as Entry, place, deeper);
  const items = expanded(
    schemas.flatMap((one) => [one['items']].flat()),
    walk.root,
  );
  const of = { schemas: items, secret: marked(items) ?? secret };
  const all = value as readonly unknown[];
  return all
    .map((one, at) => shownValue(one, isSecretOption(all[at - 1]) ? { ...of, secret: true } : of, deeper))
    .filter((one) => one !== HIDDEN);
}

/** True for an argument such as `--password`, whose value is the next argument. */
function isSecretOption(word: unknown): boolean {
  const [, name = ''] = /^--?([A-Za-z][\w-]{0,80})$/.exec(typeof word === 'string' ? word : '') ?? [];
  return isSecretName(name);
}

/** True if any part marks it secret; undefined if none marks it. */
function marked(schemas: readonly Entry[]): boolean | undefined {
  if (schemas.some((one) => one['format'] === 'password' || one['writeOnly'] === true)) return true;
  return schemas.some((one) => one['writeOnly'] === false) ? false : undefined;
}

function propertyOf(schema: Entry, name: string): readonly unknown[] {
  const { properties, patternProperties, additionalProperties } = schema;
  const own = isObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [];
  // Patterns come from outside and are not evaluated.
  return own.length > 0
    ? own
    : [...(isObject(patternProperties) ? Object.values(patternProperties) : []), additionalProperties];
}

const PARTS = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'] as const;

/** Schemas with all schemas that they are composed of, each once. */
function expanded(schemas: readonly unknown[], root: unknown): readonly Entry[] {
  const seen = new Set<Entry>();
  const waiting = [...schemas];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (!isObject(next) || seen.has(next)) continue;
    seen.add(next);
    if (typeof next['$ref'] === 'string') waiting.push(resolveReference(next['$ref'], root));
    // One by one: a list may be longer than the argument limit of a call.
    for (const part of PARTS) for (const one of [next[part]].flat()) waiting.push(one);
  }
  return [...seen];
}

/** Resolves `#/definitions/name`; does not fetch schemas from elsewhere. */
function resolveReference(pointer: string, root: unknown): unknown {
  if (!pointer.startsWith('#')) return undefined;
  let value: unknown = root;
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    value = (isObject(value) || Array.isArray(value)) && Object.hasOwn(value, key) ? (value as Entry)[key] : undefined;
  }
  return value;
}
