import * as v from 'valibot';
import { parseBundleJson } from '../../src/core/bundle.ts';
import { parseCatalog } from '../../src/core/catalog.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { parseAddonJson } from '../../src/core/package.ts';
import { parseHead } from '../../src/core/parts.ts';
import { byKey, checked, fits, longList, size } from '../../src/core/schema.ts';
import { parseLock } from '../../src/manifest/lock.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/schema');

const digest = digestOf('x');
const part = (number: number) => ({ name: `b.tar.gz.part-00${number}`, size: 10, digest });
const described = { name: 'alpha', version: '1.0.0', tree: 'addons', arch: 'amd64' };
const bundled = { ...described, requested: 'latest', digest, sha256: digest, size: 10 };
const listed = { digest, sha256: digest, toc: digest, size: 1, unpacked: 2, images: [{ reference: 'r', digest }] };
const versions = [{ version: '1.0.0', tree: 'addons', requires: ['x'], fulfills: ['y'], packages: { amd64: listed } }];
const image = { id: 'i', reference: 'r', digest, platform: 'linux/amd64' };
const file = { file: 'f', name: 'n', version: '1', arch: 'all', size: 1, digest, repository: 'r' };
const host = { os: 'rhel-9', arch: 'all', archives: ['x'], deps: ['y'], inputs: '', files: [file], required: ['z'] };

/** Each document has every field that its reader checks. */
const DOCUMENTS = [
  {
    parse: parseBundleJson,
    document: {
      format: 1,
      release: 'r1',
      arch: 'amd64',
      installer: digest,
      packages: [bundled],
      beside: [{ ...bundled, version: '2.0.0', role: 'step' }],
      os: { kept: ['rhel-9'], omitted: 5 },
      layout: 'kurl',
      tool: '1',
      delta: { since: digest, contents: digest, size: 9 },
    },
    optional: ['beside', 'os', 'layout', 'delta'],
  },
  {
    parse: parseAddonJson,
    document: {
      ...described,
      format: 1,
      os: ['rhel-9'],
      hooks: ['alpha'],
      images: [image],
      imageFormat: 'oci',
      deps: { 'rhel-9': ['curl'] },
      unpacked: { files: 1, images: 2 },
      requires: ['x'],
      fulfills: ['y'],
      recommends: ['z'],
      kubernetesVersion: '>=1.30.0',
      tool: '1',
      digest,
    },
    optional: ['recommends', 'kubernetesVersion', 'deps.rhel-9'],
  },
  {
    parse: parseCatalog,
    document: { format: 1, release: 'r1', addons: [{ name: 'alpha', versions }] },
    optional: ['addons.0.versions.0.packages.amd64.toc'],
  },
  {
    parse: parseHead,
    document: { format: 1, name: 'b.tar.gz', size: 20, tocDigest: digest, parts: [part(1), part(2)] },
    optional: [],
  },
  {
    parse: parseLock,
    document: {
      format: 1,
      images: [{ id: 'i', reference: 'r', digest, platforms: { 'linux/amd64': { digest, size: 1 } } }],
      assets: [{ name: 'n', source: 's', size: 1, digest }],
      hostPackages: [host],
      containerBuilds: [{ folder: 'f', arch: 'a', dockerfile: 'd', version: '1', inputs: digest, requires: ['x'] }],
    },
    optional: ['images.0.platforms.linux/amd64'],
  },
] as const;

type Path = readonly string[];

/** The paths of all fields; not of items of lists, which may be absent. */
function* pathsIn(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (!Array.isArray(value)) yield [...path, key];
    yield* pathsIn(item, [...path, key]);
  }
}

/** The document as text, with another value at the path; undefined removes the field. */
function changed(document: unknown, path: Path, value: unknown): string {
  const copy: unknown = structuredClone(document);
  let parent = copy as Record<string, unknown>;
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string, unknown>;
  const last = path.at(-1) ?? '';
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return JSON.stringify(copy);
}

for (const { parse, document, optional } of DOCUMENTS) {
  test(`${parse.name} refuses a document with any field of another type, and one without a required field`, () => {
    parse(JSON.stringify(document), 'd');
    for (const path of pathsIn(document)) {
      const value = path.reduce((one: unknown, key) => (one as Record<string, unknown>)[key], document);
      const isOptional = optional.some((name) => name === path.join('.'));
      const wrong = [null, true, [5], { x: 5 }, typeof value === 'number' ? '1' : 5, 1.5];
      for (const other of isOptional ? wrong : [undefined, ...wrong]) {
        try {
          parse(changed(document, path, other), 'd');
        } catch (error) {
          if (!(error instanceof CurlewError)) throw error;
          assert.match(error.message, /^d: /);
          continue;
        }
        throw new Error(`${path.join('.')}: ${JSON.stringify(other)} is accepted`);
      }
    }
  });

  test(`${parse.name} accepts a document without an optional field, and with unknown fields`, () => {
    for (const name of optional) parse(changed(document, name.split('.'), undefined), 'd');
    for (const path of pathsIn(document)) {
      const at = [...path.slice(0, -1), 'unknown'];
      if (!['deps', 'platforms', 'packages'].includes(path.at(-2) ?? '')) parse(changed(document, at, { x: 1 }), 'd');
    }
  });
}

test('the value itself is returned, with the fields that the schema does not have', () => {
  const value = { known: 'x', unknown: 1 };
  const bad = (what: string): Error => new Error(what);
  assert.is(checked(v.object({ known: v.string() }), value, bad), value);
});

test('an error has the path of the field and nothing of its value', () => {
  const schema = v.object({ rows: longList(v.object({ 'odd key': v.string() })), sizes: byKey(v.array(size)) });
  for (const [value, message] of [
    [[], 'not an object'],
    [{}, 'rows: missing'],
    [{ rows: {}, sizes: {} }, 'rows: not a list'],
    [{ rows: [{ 'odd key': 'x' }, { 'odd key': 5 }], sizes: {} }, 'rows[1]["odd key"]: not a string'],
    [{ rows: [], sizes: { a: [1, -1] } }, 'sizes.a[1]: not a size'],
    [{ rows: [], sizes: { '\u001b[2J': 1 } }, 'sizes["\\u001b[2J"]: not a list'],
    [{ rows: [], sizes: { ['x'.repeat(1000)]: 1 } }, `sizes["${'x'.repeat(60)}"]: not a list`],
  ] as const) {
    let found = '';
    try {
      checked(schema, value, (what) => new Error(what));
    } catch (error) {
      found = (error as Error).message;
    }
    assert.is(found, message);
  }
});

test('keys with names of the language are checked like others', () => {
  for (const key of ['__proto__', 'constructor', 'prototype', 'toString']) {
    assert.not.ok(fits(byKey(v.string()), JSON.parse(`{"${key}":5}`)), key);
    assert.ok(fits(byKey(v.string()), JSON.parse(`{"${key}":"x"}`)), key);
  }
});

test.run();
