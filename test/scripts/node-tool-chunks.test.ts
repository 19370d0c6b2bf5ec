/** The command as chunks of CommonJS, which the executable for nodes compiles one by one. */
import { createRequire } from 'node:module';
import { commandChunks } from '../../scripts/node-tool/code.ts';
import { chunkLoader } from '../../scripts/node-tool/load-chunks.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

// own process: esbuild's service lives as long as it
const test = suite('scripts/node-tool/chunks');
const nodeRequire = createRequire(import.meta.url);

interface Started {
  /** What `globalThis.seen` has received; a promise in `globalThis.later` is awaited first. */
  readonly seen: readonly unknown[];
  /** Chunks in the order in which they were compiled, without the hashes in their names. */
  readonly compiled: readonly string[];
}

interface Stage {
  seen: unknown[];
  later: Promise<void> | undefined;
}

/** Bundles and starts a command of these modules. */
async function started(files: Files): Promise<Started> {
  await using box = await tree(files);
  const chunks = await commandChunks(box.path, {});
  const compiled: string[] = [];
  const stage: Stage = Object.assign(globalThis, { seen: [], later: undefined });
  const text = (name: string): string => {
    compiled.push(name.replace(/-[A-Z0-9]{8}\.js$/, '.js'));
    return chunks[name] ?? '';
  };
  chunkLoader(text, nodeRequire)('./main.js');
  await stage.later;
  return { seen: stage.seen, compiled };
}

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(() => 'no failure', String);
}

test('a start compiles what it imports, and a later module when it is asked for', async () => {
  const { seen, compiled } = await started({
    'src/cli/main.ts': `import { word } from '../core/word.ts';
      seen.push(word); later = process.argv.includes('never') ? import('../app/other.ts') : import('../app/one.ts');`,
    'src/core/word.ts': `export const word = 'start';`,
    'src/app/one.ts': `import { word } from '../core/word.ts'; seen.push('one after ' + word);`,
    'src/app/other.ts': `import { word } from '../core/word.ts'; seen.push('other after ' + word);`,
  });
  assert.equal(seen, ['start', 'one after start']);
  assert.equal(
    compiled.filter((name) => name !== 'chunk.js'),
    ['main.js', 'one.js'],
  );
});

test('a module is one for all chunks that share it, and what it changes is seen everywhere', async () => {
  const { seen, compiled } = await started({
    'src/cli/main.ts': `later = Promise.all([import('../app/one.ts'), import('../app/other.ts')]).then(([one, other]) => {
      one.add(); other.add(); seen.push(one.total(), other.total(), other.default); });`,
    'src/core/count.ts': `export let count = 0; export function add() { count += 1; }`,
    'src/app/one.ts': `import { add, count } from '../core/count.ts'; export { add }; export const total = () => count;`,
    'src/app/other.ts': `import { add, count } from '../core/count.ts'; export { add }; export const total = () => count;
      export default 'default';`,
  });
  assert.equal(seen, [2, 2, 'default']);
  assert.equal(compiled.toSorted(), ['chunk.js', 'main.js', 'one.js', 'other.js']);
});

test('small modules that later ones share are one chunk, though no two of these share the same', async () => {
  const five = [0, 1, 2, 3, 4];
  const shared = five.map((at) => [`src/core/word${at}.ts`, `export const word${at} = process.pid + ${at};`] as const);
  const later = five.map((at) => {
    const others = five.filter((other) => other !== at).map((other) => `word${other}`);
    const lines = others.map((word) => `import { ${word} } from '../core/${word}.ts'; seen.push(${word});`);
    return [`src/app/later${at}.ts`, lines.join('\n')] as const;
  });
  const loads = five.map((at) => `import('../app/later${at}.ts')`);
  const { seen, compiled } = await started({
    'src/cli/main.ts': `later = Promise.all([${loads.join()}]);`,
    ...Object.fromEntries([...shared, ...later]),
  });
  assert.is(seen.length, 20);
  assert.equal(compiled.toSorted(), ['chunk.js', ...five.map((at) => `later${at}.js`), 'main.js']);
});

test('a large module is not loaded for what only a few others share with its users', async () => {
  const { compiled, seen } = await started({
    'src/cli/main.ts': `later = import('../app/one.ts').then(() => import('../app/two.ts'));`,
    'src/core/large.ts': `export const large = ${JSON.stringify('x'.repeat(100_000))};`,
    'src/core/small.ts': `export const small = process.pid;`,
    'src/app/one.ts': `import { small } from '../core/small.ts'; seen.push(small);`,
    'src/app/two.ts': `import { small } from '../core/small.ts'; import { large } from '../core/large.ts'; seen.push(small, large);
      if (large === '') void import('./three.ts');`,
    'src/app/three.ts': `import { large } from '../core/large.ts'; export const three = large.length;`,
  });
  assert.is(seen.length, 3);
  // The chunk of the small one, before the second module and the large one.
  assert.equal(compiled.slice(1, 3).toSorted(), ['chunk.js', 'one.js']);
  assert.is(compiled.length, 5);
});

test('chunks that require each other see what the other declares, and run once', () => {
  const ran: string[] = [];
  const chunks: Readonly<Record<string, string>> = {
    'main.js': `module.exports = { get main() { return main; } };
      const { other } = require('./other.js'); function main() { return 'main'; } require('ran')(other() + ' seen by main');`,
    'other.js': `module.exports = { get other() { return other; } };
      const loaded = require('./main.js'); function other() { return 'other'; } require('ran')(loaded.main() + ' seen by other');`,
  };
  const load = chunkLoader(
    (name) => chunks[name] ?? '',
    (name) => (name === 'ran' ? (line: string) => ran.push(line) : undefined),
  );
  load('./main.js');
  load('./other.js');
  assert.equal(ran, ['main seen by other', 'other seen by main']);
});

test('modules of Node and CommonJS packages come from the require of Node', async () => {
  const { seen } = await started({
    'src/cli/main.ts': `import { sep } from 'node:path'; import old from 'old'; seen.push(sep, old());`,
    'node_modules/old/package.json': '{ "name": "old", "main": "old.cjs" }',
    'node_modules/old/old.cjs': `const { sep } = require('path'); module.exports = () => 'old' + sep;`,
  });
  assert.equal(seen, ['/', 'old/']);
});

test('a chunk that fails fails again, and is named in the stack', async () => {
  const { seen } = await started({
    'src/cli/main.ts': `const load = () => import('../app/broken.ts').then(() => seen.push('loaded'), (error) => seen.push(error.stack));
      later = load().then(load);`,
    'src/app/broken.ts': `export const none = undefined; throw new Error('broken');`,
  });
  assert.is(seen.length, 2);
  for (const stack of seen) assert.match(String(stack), /^Error: broken\n +at broken-[A-Z0-9]{8}\.js:1:\d+/);
});

test('a module that looks for files beside itself is refused by its name', async () => {
  const failure = await failureOf(
    started({
      'src/cli/main.ts': `import '../own/files.ts';`,
      'src/own/files.ts': `seen.push(import.meta.url);`,
    }),
  );
  assert.match(failure, /src\/own\/files\.ts:1:10: ERROR: "import\.meta" is not available/);
});

test('a text that takes the place of no module is an error', async () => {
  await using box = await tree({ 'src/cli/main.ts': 'export {};' });
  assert.match(await failureOf(commandChunks(box.path, { 'src/own/gone.ts': '' })), 'nothing imports src/own/gone.ts');
});

test.run();
