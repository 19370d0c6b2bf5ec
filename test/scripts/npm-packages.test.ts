/** How npm packages get into a checkout: by scripts/support/node.bash, wherever that is called from. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { copyFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('npm packages', { timeoutMs: 120_000 });
const ROOT = join(import.meta.dirname, '../..');
const STEPS = ['install', 'postinstall', 'preinstall', 'prepare'];

async function run(box: Tree, line: string): Promise<void> {
  const env = {
    HOME: box.path,
    PATH: process.env['PATH'],
    NPM_CONFIG_CACHE: box.at('cache'),
    NPM_CONFIG_OFFLINE: 'true',
  };
  await execa('bash', ['-euo', 'pipefail', '-c', line, 'bash', ROOT], { cwd: box.path, env, extendEnv: false });
}

test('nothing that a package brings is run while it is installed', async () => {
  const scripts = Object.fromEntries(STEPS.map((step) => [step, `echo ${step} >>"$HOME/ran"`]));
  await using box = await tree({
    'hooked/package.json': JSON.stringify({ name: 'hooked', version: '1.0.0', scripts }),
    'checkout/package.json': JSON.stringify({ name: 'own', version: '1.0.0', scripts }),
  });
  await copyFile(join(ROOT, '.npmrc'), box.at('checkout/.npmrc'));
  await run(box, 'cd hooked && npm pack --silent --ignore-scripts');
  await run(box, 'cd checkout && npm install --silent --package-lock-only ../hooked/hooked-1.0.0.tgz');
  await run(
    box,
    'source "$1/scripts/support/steps.bash"; source "$1/scripts/support/node.bash"; cd checkout; node_packages',
  );
  assert.ok(existsSync(box.at('checkout/node_modules/hooked/package.json')));
  assert.not.ok(existsSync(box.at('ran')));
});

test('a script that has npm install elsewhere, where the .npmrc of the checkout does not count, says the same', async () => {
  const files = ['scripts', '.github', '.ci'].map(async (name) =>
    readdir(join(ROOT, name), { recursive: true, withFileTypes: true }),
  );
  const lines: string[] = [];
  for (const entry of (await Promise.all(files)).flat()) {
    if (!entry.isFile()) continue;
    const text = await readFile(join(entry.parentPath, entry.name), 'utf8');
    lines.push(...text.split('\n').filter((line) => /^[^#]*\b(npm (ci|i|install|exec|rebuild|x)|npx) -/.test(line)));
  }
  assert.ok(lines.length >= 3);
  const [own, ...others] = lines.toSorted((a, b) => Number(a.includes('--prefix')) - Number(b.includes('--prefix')));
  assert.match(own ?? '', /^ *npm ci --no-audit --no-fund &&/);
  for (const line of others) assert.match(line, /--ignore-scripts/);
});

test.run();
