/** What has to be on disk before a name is given: seen from outside, since only a power cut would show it. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { formatAddonJson } from '../../src/core/package.ts';
import * as assert from '../support/assert.ts';
import { compiledModule } from '../support/compiled.ts';
import { archiveOf, packageOf } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('components/durable', { timeoutMs: 120_000 });

const reason = cannotRun('strace');

async function requireFlushed(box: Tree, script: string, paths: readonly string[]): Promise<void> {
  const node = [process.execPath, '--input-type=module', '-e', script];
  await run('strace', ['-f', '-y', '-qq', '-e', 'trace=fsync,fdatasync', '-o', box.at('trace'), ...node]);
  const trace = await readFile(box.at('trace'), 'utf8');
  for (const path of paths) assert.ok(trace.includes(`<${box.at(path)}>`), path);
}

if (reason === undefined) {
  test('extraction flushes every file, and every folder on the way to it', async () => {
    await using box = await tree();
    const { bytes } = archiveOf([{ path: 'a/b/c/file', data: 'x' }]);
    await writeFile(box.at('p.tar.gz'), bytes);
    const script = `
      const { openFileSource, readIndex } = await import(${JSON.stringify(compiledModule('src/formats/archive/read.ts'))});
      const { extractEntries } = await import(${JSON.stringify(compiledModule('src/formats/archive/extract.ts'))});
      const { signal } = new AbortController();
      const source = await openFileSource(${JSON.stringify(box.at('p.tar.gz'))});
      const index = await readIndex(source, { signal });
      await extractEntries(source, index, { into: ${JSON.stringify(box.at('out'))}, sync: true, signal });`;
    await requireFlushed(box, script, ['out/a/b/c/file', 'out/a/b/c', 'out/a/b', 'out/a', 'out']);
  });

  test('so does a package that is taken from an unpacked bundle', async () => {
    await using box = await tree();
    const file = { path: 'images/blobs/sha256/x', data: 'x' };
    const { addon } = packageOf('aaa', '1.0.0', [file]);
    const prefix = 'addons/aaa/1.0.0/';
    const json = { path: `${prefix}addon.json`, data: formatAddonJson(addon) };
    await writeFile(box.at('b.tar.gz'), archiveOf([json, { ...file, path: prefix + file.path }]).bytes);
    await mkdir(box.at('bundle'));
    await run('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.at('bundle')]);
    const script = `
      const { folderPackages } = await import(${JSON.stringify(compiledModule('src/runtime/node/source-folder.ts'))});
      const { signal } = new AbortController();
      const directory = ${JSON.stringify(box.path)};
      const { packages } = await folderPackages(${JSON.stringify(box.at('bundle'))}, { directory, signal });
      await packages[0].extract(${JSON.stringify(box.at('out'))}, { signal });`;
    const folders = ['out/images/blobs/sha256', 'out/images/blobs', 'out/images', 'out', ''];
    await requireFlushed(box, script, ['out/addon.json', 'out/images/blobs/sha256/x', ...folders]);
  });

  test('the folder of an agent is flushed with those in which it is new', async () => {
    await using box = await tree();
    const script = `
      const { AgentFolder } = await import(${JSON.stringify(compiledModule('src/fleet/agent/folder.ts'))});
      const folder = new AgentFolder(${JSON.stringify(box.at('site'))});
      await folder.claim();
      await folder.writeSettings({ cluster: 'oslo', hub: crypto.randomUUID(), keys: [], allowUnsigned: true });`;
    const folders = ['site/var/lib/curlew', 'site/var/lib', 'site/var', 'site', ''];
    await requireFlushed(box, script, ['site/var/lib/curlew/agent', ...folders]);
  });
} else {
  test.skip('files and folders are flushed', reason);
}

test.run();
