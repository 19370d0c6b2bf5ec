/** The programs of docs/library.md, with the package that npm would publish in an empty folder. */
import { execa } from 'execa';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { functionsOf, resultTypes } from '../../scripts/docs/library-tables.ts';
import * as assert from '../support/assert.ts';
import { packedExecutableName, releasedExecutableName } from '../../src/core/layout.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { built, CHECKOUT } from '../support/built.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('components/library', { timeoutMs: 300_000 });
let box: Tree;
const PAGE = join(CHECKOUT, 'docs/library.md');

/** Code blocks of one language, in their order. */
function blocksOf(page: string, language: string): readonly string[] {
  return [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].flatMap(([, name, text = '']) =>
    name === language ? [text] : [],
  );
}

async function linkInto(name: string): Promise<void> {
  const target = box.at('node_modules', name);
  await mkdir(dirname(target), { recursive: true });
  await symlink(join(CHECKOUT, 'node_modules', name), target);
}

/** The packed package in node_modules, with the executables of a release next to it, and what TypeScript needs of a project. */
async function makeProject(): Promise<void> {
  box = await tree({ 'package.json': JSON.stringify({ name: 'own', type: 'module', private: true }) });
  const env = { NPM_CONFIG_CACHE: box.at('npm') };
  await execa('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', box.path], { cwd: CHECKOUT, env });
  const { name, version } = JSON.parse(await readFile(join(CHECKOUT, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
  };
  await mkdir(box.at('node_modules', name), { recursive: true });
  const archive = box.at(`${name}-${version}.tgz`);
  await execa('tar', ['-xzf', archive, '-C', box.at('node_modules', name), '--strip-components=1']);
  for (const one of ['@types/node', 'undici-types']) await linkInto(one);
  await mkdir(box.at('release'));
  for (const arch of ARCHES)
    await symlink(built(packedExecutableName(arch)), box.at('release', releasedExecutableName(version, arch)));
}

test.before(makeProject);
test.after(async () => box[Symbol.asyncDispose]());

/** What the compiler reports; empty if the files are correct. */
async function compile(files: readonly string[]): Promise<string> {
  const compilerOptions = { target: 'es2023', module: 'nodenext', strict: true, types: ['node'], rootDir: '.' };
  await writeFile(box.at('tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const compiler = join(CHECKOUT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await execa(process.execPath, [compiler, '-p', '.'], { cwd: box.path, reject: false });
  return stdout;
}

test('the package exports every type that the page names, and takes the request of every function', async () => {
  const read = (path: string): string => readFileSync(join(CHECKOUT, 'src', path), 'utf8');
  const types = resultTypes(read);
  const requests = functionsOf(read).map((name) => `curlew.RequestFor<typeof curlew.${name}>`);
  const text = `import type * as curlew from 'curlew';
import type { ${types.join(', ')} } from 'curlew';
export type Results = [${types.join(', ')}];
export type Requests = [${requests.join(', ')}];
`;
  await writeFile(box.at('names.ts'), text);
  assert.is(await compile(['names.ts']), '');
});

test('the programs of the page compile, and do what it says, with the packed package alone', async () => {
  const page = await readFile(PAGE, 'utf8');
  const programs = blocksOf(page, 'ts');
  assert.is(programs.length, 6);
  const files = programs.map((_, index) => `program-${index}.ts`);
  for (const [index, text] of programs.entries()) await writeFile(box.at(files[index] ?? ''), text);
  assert.is(await compile(files), '');
  for (const text of blocksOf(page, 'sh')) await execa('bash', ['-euc', text], { cwd: box.path });
  const outputs: string[] = [];
  for (const file of files) {
    const env = { CURLEW_EXECUTABLES: 'release' };
    const { stdout } = await execa(process.execPath, [file.replace('.ts', '.js')], { cwd: box.path, env });
    outputs.push(stdout);
  }
  const [, built = '', published = '', bundled = '', planned = '', vector = ''] = outputs;
  assert.match(built, /^hello 1\.0\.0 built \d+ sha256:[0-9a-f]{64}$/m);
  assert.match(published, /^1 packages to build, \d+ bytes to upload\nhello 1\.0\.0$/);
  assert.match(bundled, /^bundle\.tar\.gz: \d+ files$/);
  assert.match(planned, /"hello"[^]*\n0 add-ons are installed$/);
  assert.is(vector, '{"steps":["kubernetes v1.31.0","addon 1.1.0"]}');
});

test('a request with a misspelled field does not compile', async () => {
  await writeFile(
    box.at('a.ts'),
    "import { createContext, publish } from 'curlew';\nawait publish({ to: 'store', relase: 'v1' }, createContext());\n",
  );
  assert.match(await compile(['a.ts']), /'relase' does not exist in type /);
});

test('a failure is an error of the package, and cancelled work says so', async () => {
  await writeFile(
    box.at('a.mjs'),
    `import { bundle, createContext, CurlewError, ERROR_CODES } from 'curlew';
const signal = AbortSignal.abort();
for (const context of [createContext(), createContext({ signal })]) {
  const error = await bundle({ spec: 'none.yaml', from: 'none', output: 'a.tar.gz' }, context).catch((thrown) => thrown);
  console.log(error instanceof CurlewError, error.code, error.code in ERROR_CODES);
}\n`,
  );
  const { stdout } = await execa(process.execPath, ['a.mjs'], { cwd: box.path });
  assert.match(stdout, /^true [A-Z_]+ true\ntrue [A-Z_]+ true$/);
});

test('a store in S3 makes Node print no warning', async () => {
  await writeFile(
    box.at('s3.mjs'),
    `import { createContext, versions } from 'curlew';
import { createServer } from 'node:http';
const server = createServer((request, response) => response.writeHead(403).end()).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));
const request = { from: 's3://bucket/dist', s3Endpoint: 'http://127.0.0.1:' + server.address().port };
console.log(await versions(request, createContext()).catch((error) => error.code));
server.close();\n`,
  );
  const env = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  const { stdout, stderr } = await execa(process.execPath, ['s3.mjs'], { cwd: box.path, env });
  assert.equal([stdout, stderr], ['AUTH_FAILED', '']);
});

test.run();
