/**
 * A publisher that the system kills at one of its calls to the store: `killed-publish.ts STORE FILES AT WHEN`. It prints
 * `done CALLS` when it was not.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { publishPackages } from '../../src/ship/release/publish.ts';
import type { PackageFileToPublish } from '../../src/ship/release/upload.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { noReport } from './context.ts';

const [root = '', list = '', at = '0', when = 'before'] = process.argv.slice(2);
const files = JSON.parse(await readFile(list, 'utf8')) as readonly PackageFileToPublish[];
const { signal } = new AbortController();
let calls = 0;

async function killHere(): Promise<void> {
  process.kill(process.pid, 'SIGKILL');
  await pause(60_000);
}

async function counted<Result>(work: () => Promise<Result>): Promise<Result> {
  calls += 1;
  const mine = calls;
  if (String(mine) === at && when === 'before') await killHere();
  // Killed while the call is at work, wherever that is.
  if (String(mine) === at && when === 'during') setImmediate(() => process.kill(process.pid, 'SIGKILL'));
  const result = await work();
  if (String(mine) === at && when === 'after') await killHere();
  return result;
}

const inner = createFolderStore(root);
const store: Store = {
  ...inner,
  head: async (...args) => counted(() => inner.head(...args)),
  get: async (...args) => counted(() => inner.get(...args)),
  read: async (...args) => counted(() => inner.read(...args)),
  put: async (...args) => counted(() => inner.put(...args)),
  copy: async (...args) => counted(() => inner.copy(...args)),
};
await publishPackages(files, {
  store,
  release: undefined,
  now: new Date('2026-11-21T12:00:00Z'),
  carry: true,
  commit: undefined,
  jobs: 4,
  report: noReport,
  signal,
});
console.log(`done ${calls}`);
