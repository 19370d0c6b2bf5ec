import { build } from 'esbuild';
import { execa } from 'execa';
import { readdir } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { writeChunks } from './chunks.ts';

const test = suite('runner/chunks');

/** Compiles these files into the folder `out` of a box; all but `lib.ts` are entry points. */
async function compiled(files: Readonly<Record<string, string>>): Promise<Tree> {
  const box = await tree({ 'package.json': '{"type": "module"}', ...files });
  const built = await build({
    absWorkingDir: box.path,
    entryPoints: Object.keys(files).filter((path) => path !== 'lib.ts'),
    outdir: box.at('out'),
    outbase: box.path,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    sourcemap: 'linked',
    metafile: true,
    write: false,
  });
  await writeChunks(built, box.path, 'out');
  return box;
}

async function runs(box: Tree, path: string): Promise<string> {
  const { all } = await execa(process.execPath, [box.at(path)], { all: true, reject: false });
  return all;
}

const LIB = `import { sep } from 'node:path';
export let count = 0;
export const named = (name: string): string => { count += 1; return sep + name.replace(/é/, 'e'); };
export const failing = (): never => { throw new Error('odd'); };
`;

test('modules that share code have it from scripts, each with what V8 made of it, also from another folder', async () => {
  await using box = await compiled({
    'lib.ts': LIB,
    'one.ts': `#!/usr/bin/env node
import { named } from './lib.ts';
const { later } = await import('./later.ts');
console.log(named('oné'), later());`,
    'later.ts': `import { named } from './lib.ts'; export const later = () => named('later');`,
    'deep/two.ts': `import { named as other } from '../lib.ts'; console.log(other('two'));`,
  });
  assert.is(await runs(box, 'out/one.js'), '/one /later');
  await execa('mv', [box.at('out'), box.at('moved')]);
  assert.is(await runs(box, 'moved/deep/two.js'), '/two');
  await execa('bash', [
    '-c',
    `cd '${box.path}' && echo "import { later } from './moved/later.js'; console.log(later());" >use.js`,
  ]);
  assert.is(await runs(box, 'use.js'), '/later');
  const files = (await readdir(box.at('moved'), { recursive: true })).filter((path) => /[.](cjs|cache)$/.test(path));
  const scripts = files.filter((path) => path.endsWith('.cjs') && path !== 'load.cjs');
  assert.equal(
    files.filter((path) => path.endsWith('.cache')),
    scripts.map((path) => path.replace('.cjs', '.cache')),
  );
  assert.is(scripts.length > 1, true);
});

test('an error names the file and the place of a script, for its source map', async () => {
  await using box = await compiled({
    'lib.ts': LIB,
    'one.ts': `import { failing } from './lib.ts'; failing();`,
    'two.ts': `import { failing } from './lib.ts'; console.log(failing.name);`,
  });
  assert.match(
    await runs(box, 'out/one.js'),
    /Error: odd\n +at failing \(file:.*\/out\/chunks\/chunk-\w+\.cjs:\d+:\d+\)/,
  );
});

test.run();
