/** Which settings of an add-on are secret: what may be shown of them where others can read it. Pure. */
import { maskSecrets, redact } from '../core/errors.ts';
import { isObject } from '../core/json.ts';

type Entry = Readonly<Record<string, unknown>>;

/**
 * What a name says, in words: `rootPassword`, `s3_secret_key`. A name that is known to be about a secret rather than to
 * hold one (`tokenTTL`, `existingSecret`) does not count. In doubt a setting is secret: the schema of a package can say
 * otherwise (`writeOnly: false`).
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

function words(name: string): string {
  const apart = name.replaceAll(/([a-z\d])([A-Z])/g, '$1 $2').replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2');
  return apart
    .split(/[^A-Za-z]+/)
    .filter((word) => word !== '')
    .join(' ')
    .toLowerCase();
}

/** True for the name of a setting, or of a field in one, that says that its value is secret. */
export function isSecretName(name: string): boolean {
  const said = words(name.slice(0, 200));
  return (SECRET.test(said) || ENGINE_AUTH.test(said)) && !HARMLESS.test(said);
}

/** What stands for the value of a secret setting where values are shown. */
const SHOWN = '[secret]';

/** The value of a setting, or of its variable, for people to see: an empty one is no secret. */
export function shownText(name: string, text: string): string {
  return text !== '' && (isSecretName(name) || holdsSecret(text)) ? SHOWN : redact(text);
}

/** A line of a spec, by its number from 0, for people to see; columns up to the secret stay where they are. */
export function shownLine(lines: readonly string[], at: number): string {
  const line = lines[at] ?? '';
  const [, before = '', name = ''] = /^([\s"'{,-]*([\w.-]{1,80})["']?\s*[:=]\s*)\S/.exec(line) ?? [];
  if (isSecretName(name)) return `${before}${SHOWN}`;
  return holdsSecret(line) || isBelowSecret(lines, at) ? SHOWN : maskSecrets(line);
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

/** A private key, a Secret of Kubernetes, or a field with the name of a secret in YAML, JSON, TOML or the like. */
function holdsSecret(text: string): boolean {
  if (text.includes('PRIVATE KEY-----') || /\bkind["']?[ \t]*:[ \t]*["']?Secret\b/.test(text)) return true;
  // Above what it holds, in YAML.
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
  // Words of a command line.
  for (const [, name = ''] of text.matchAll(/(?<!\S)--?([A-Za-z][\w-]{0,80})[ \t]+[^\s-]/g)) {
    if (isSecretName(name)) return true;
  }
  return false;
}

interface Place {
  /** What schemas say of the value; several where they are put together of parts. */
  readonly schemas: readonly Entry[];
  /** The value, or one that it is in, is secret by its name or schema. */
  readonly secret: boolean;
}

/** Deeper values are not looked into: they count as secret. */
const DEEPEST = 32;
const HIDDEN = Symbol('hidden');

/**
 * An add-on's entry in the spec without its secrets, and whether there were any. Secret is what the package's JSON Schema
 * marks (`format: password`, `writeOnly: true`), what has such a name and is not marked `writeOnly: false`, a text in which
 * a private key or a field with such a name stands, and user info and query of URLs. Fields are left out; an empty text, a
 * switch and null are no secrets.
 */
export function withoutSecrets(entry: Entry, schema: unknown): { readonly shown: Entry; readonly hidden: boolean } {
  const found = { hidden: false };
  const { version, s3Override, ...settings } = entry;
  const shown = shownMap(
    settings,
    { schemas: expanded([schema], schema), secret: false },
    { root: schema, depth: 0, found },
  );
  const common = Object.entries({ version, s3Override }).filter(([, value]) => value !== undefined);
  return { shown: { ...Object.fromEntries(common), ...shown }, hidden: found.hidden };
}

interface Walk {
  readonly root: unknown;
  readonly depth: number;
  readonly found: { hidden: boolean };
}

function shownMap(map: Entry, place: Place, walk: Walk): Entry {
  const rows = Object.entries(map).map(([name, value]) => {
    const schemas = expanded(
      place.schemas.flatMap((one) => propertyOf(one, name)),
      walk.root,
    );
    const harmless = HARMLESS.test(words(name.slice(0, 200)));
    const secret = marked(schemas) ?? (isSecretName(name) || names(map, name) || (place.secret && !harmless));
    return [name, shownValue(value, { schemas, secret }, walk)] as const;
  });
  return Object.fromEntries(rows.filter(([, value]) => value !== HIDDEN));
}

/** `{ name: DB_PASSWORD, value: x }`, as Kubernetes writes variables. */
function names(map: Entry, field: string): boolean {
  const said = [map['name'], map['key']];
  return field === 'value' && said.some((name) => typeof name === 'string' && isSecretName(name));
}

function shownValue(value: unknown, place: Place, walk: Walk): unknown {
  const { secret, schemas } = place;
  const hide = (): typeof HIDDEN => {
    walk.found.hidden = true;
    return HIDDEN;
  };
  if (value === '' || value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') {
    if (secret || holdsSecret(value)) return hide();
    const text = redact(value);
    if (text !== value) walk.found.hidden = true;
    return text;
  }
  if (typeof value !== 'object') return secret ? hide() : value;
  if (walk.depth >= DEEPEST) return hide();
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

/** `--password`, as a word of a command of which the next one is its value. */
function isSecretOption(word: unknown): boolean {
  const [, name = ''] = /^--?([A-Za-z][\w-]{0,80})$/.exec(typeof word === 'string' ? word : '') ?? [];
  return isSecretName(name);
}

/** Any part that marks it secret counts; undefined where none says anything. */
function marked(schemas: readonly Entry[]): boolean | undefined {
  if (schemas.some((one) => one['format'] === 'password' || one['writeOnly'] === true)) return true;
  return schemas.some((one) => one['writeOnly'] === false) ? false : undefined;
}

function propertyOf(schema: Entry, name: string): readonly unknown[] {
  const { properties, patternProperties, additionalProperties } = schema;
  const own = isObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [];
  // Patterns come from outside, and are not run.
  return own.length > 0
    ? own
    : [...(isObject(patternProperties) ? Object.values(patternProperties) : []), additionalProperties];
}

const PARTS = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else'] as const;

/** Schemas with all that they are put together of, each part once. */
function expanded(schemas: readonly unknown[], root: unknown): readonly Entry[] {
  const seen = new Set<Entry>();
  const waiting = [...schemas];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (!isObject(next) || seen.has(next)) continue;
    seen.add(next);
    if (typeof next['$ref'] === 'string') waiting.push(referred(next['$ref'], root));
    // One by one: a list may be longer than the arguments of a call.
    for (const part of PARTS) for (const one of [next[part]].flat()) waiting.push(one);
  }
  return [...seen];
}

/** `#/definitions/name`; schemas elsewhere are not fetched. */
function referred(pointer: string, root: unknown): unknown {
  if (!pointer.startsWith('#')) return undefined;
  let found: unknown = root;
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    found = (isObject(found) || Array.isArray(found)) && Object.hasOwn(found, key) ? (found as Entry)[key] : undefined;
  }
  return found;
}
