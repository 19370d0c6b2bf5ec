/** Test vectors prove the product: what they call, a command calls, too. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('functions of test vectors');
const SRC = join(import.meta.dirname, '../../src');
const ADAPTERS = 'conformance/';
/** Not those of types: a type is the form of what is called. */
const IMPORT = /^import \{([^}]*)\} from '(\.[^']+)';$/gm;
const FUNCTION = /^export function (\w+)[\s\S]*?^\}$/gm;

interface Import {
  readonly file: string;
  /** `PATH#NAME` of the export. */
  readonly key: string;
  /** What the file calls it. */
  readonly local: string;
}

const files = (await readdir(SRC, { recursive: true })).filter((path) => path.endsWith('.ts'));
const texts = new Map(
  await Promise.all(files.map(async (file) => [file, await readFile(join(SRC, file), 'utf8')] as const)),
);
const imports = [...texts].flatMap(([file, text]) =>
  [...text.matchAll(IMPORT)].flatMap(([, names = '', path = '']): readonly Import[] => {
    const from = relative(SRC, join(SRC, dirname(file), path));
    const values = names.split(',').filter((name) => name.trim() !== '' && !/^\s*type /.test(name));
    return values.map((name) => {
      const [exported = '', local = exported] = name.trim().split(' as ');
      return { file, key: `${from}#${exported}`, local };
    });
  }),
);
const isAdapter = (file: string): boolean => file.startsWith(ADAPTERS);

/** Is it also used in the file that exports it? */
function isUsedAtHome(key: string): boolean {
  const [file = '', name = ''] = key.split('#');
  const code = (texts.get(file) ?? '').replaceAll(/^ *(?:\/?\*|\/\/).*$/gm, '');
  return [...code.matchAll(new RegExp(String.raw`\b${name}\b`, 'g'))].length > 1;
}

test('no function of src is imported by the adapters of vectors alone', () => {
  const elsewhere = new Set(imports.filter(({ file }) => !isAdapter(file)).map(({ key }) => key));
  const called = imports.filter(({ file, key }) => isAdapter(file) && !isAdapter(key)).map(({ key }) => key);
  assert.ok(called.length > 30);
  assert.equal(called.filter((key) => !elsewhere.has(key) && !isUsedAtHome(key)).toSorted(), []);
});

test('each function for vectors calls one of the product', () => {
  const answering = [...texts]
    .filter(([file]) => isAdapter(file))
    .flatMap(([file, text]) => {
      const own = imports.filter((one) => one.file === file && !isAdapter(one.key)).map(({ local }) => local);
      const calls = new RegExp(String.raw`\b(?:${own.join('|')})\(`);
      return [...text.matchAll(FUNCTION)].map(([body, name = '']) => ({
        name,
        calls: calls.test(body.slice(body.indexOf('{'))),
      }));
    });
  assert.ok(answering.length > 25);
  assert.equal(
    answering.filter(({ name, calls }) => !calls && name !== 'orError').map(({ name }) => name),
    [],
  );
});

test.run();
