/** Scripts on nodes ask systemd or the container runtime for a process: a pod may run a program of any name. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('processes by name');
const ROOT = join(import.meta.dirname, '../..');
const BY_NAME = /\b(?:pgrep|pkill|killall|pidof|fuser)\b|\bps +-?\w*[aex]/;

test('no script knows a process by its name', async () => {
  const files = ['packages', 'addons', 'scripts/lib', 'scripts/new'].map(async (folder) => {
    const names = await readdir(join(ROOT, folder), { recursive: true });
    return names.filter((name) => name.endsWith('.sh')).map((name) => join(folder, name));
  });
  const scripts = (await Promise.all(files)).flat();
  assert.ok(scripts.length > 20);
  const lines = scripts.map(async (path) => {
    const text = await readFile(join(ROOT, path), 'utf8');
    return text.split('\n').flatMap((line, at) => (BY_NAME.test(line) ? [`${path}:${at + 1}: ${line.trim()}`] : []));
  });
  assert.equal((await Promise.all(lines)).flat(), []);
});

test.run();
