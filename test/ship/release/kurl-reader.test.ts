/** A reader as kURL's API, bundler and script are: plain GETs below `…/dist`, nothing of our own. */
import { execa } from 'execa';
import { mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promote, sourceRelease } from '../../../src/ship/release/promote.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { madePackage, publishAs } from '../../support/releases.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('a reader such as kURL');

interface Site extends AsyncDisposable {
  readonly url: string;
}

/** Any static file server: files below a folder, 404 for the rest. */
async function serveFolder(root: string): Promise<Site> {
  const server = createServer((request, response) => {
    readFile(join(root, new URL(request.url ?? '/', 'http://x').pathname)).then(
      (data) => response.writeHead(200, { 'content-length': data.byteLength }).end(data),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url, [Symbol.asyncDispose]: close };
}

async function fetched(url: string): Promise<Buffer> {
  const response = await fetch(url);
  assert.is(response.status, 200, url);
  return Buffer.from(await response.arrayBuffer());
}

/** A bucket with `staging` and `dist`; staging's release is promoted as v2026.11.20-0. */
async function bucket(box: Tree, signal: AbortSignal): Promise<void> {
  for (const name of ['bucket/staging', 'bucket/dist', 'out']) await mkdir(box.at(name), { recursive: true });
  const [staging, dist] = [createFolderStore(box.at('bucket/staging')), createFolderStore(box.at('bucket/dist'))];
  const files = [
    await madePackage(box, 'rook', '1.0.4', 'r1'),
    await madePackage(box, 'rook', '1.0.4-14.2.21', 'r2'),
    await madePackage(box, 'minio', '2025-10-15T17-29-55Z', 'm'),
    await madePackage(box, 'weave', '2.8.1+build', 'w'),
  ];
  const orders = new Map([['rook', ['1.0.4']]]);
  await publishAs(staging, 'v2026.11.20-0-abc1234', files, signal, { orders });
  const source = await sourceRelease(staging, { release: undefined, signal });
  const flags = { deep: false, stream: false, dryRun: false };
  await promote(source, {
    to: dist,
    release: 'v2026.11.20-0',
    ...flags,
    jobs: 2,
    report: noReport,
    signal,
  });
}

test('kurl.md 3.1: VERSION has no newline and leads to every package, versioned and unversioned', async ({
  signal,
}) => {
  await using box = await tree();
  await bucket(box, signal);
  await using site = await serveFolder(box.at('bucket'));
  const version = (await fetched(`${site.url}/dist/VERSION`)).toString();
  assert.is(version, 'v2026.11.20-0');
  const lists = JSON.parse((await fetched(`${site.url}/dist/${version}/supported-versions-gen.json`)).toString()) as {
    supportedVersions: Record<string, readonly string[]>;
  };
  let packages = 0;
  for (const [name, [latest, ...versions]] of Object.entries(lists.supportedVersions)) {
    assert.is(latest, 'latest');
    for (const one of versions) {
      const file = `${name}-${one.replaceAll('+', '-')}.tar.gz`;
      const versioned = await fetched(`${site.url}/dist/${version}/${file}`);
      assert.equal(await fetched(`${site.url}/dist/${file}`), versioned);
      const { stdout } = await execa('tar', ['-tzf', '-'], { input: versioned });
      assert.match(stdout, `addons/${name}/${one}/install.sh`);
      packages += 1;
    }
  }
  assert.is(packages, 4);
});

test('kurl.md 3.1: the generated files have unversioned copies too', async ({ signal }) => {
  await using box = await tree();
  await bucket(box, signal);
  await using site = await serveFolder(box.at('bucket'));
  for (const file of ['supported-versions-gen.json', 'addons-gen.json']) {
    assert.equal(await fetched(`${site.url}/dist/${file}`), await fetched(`${site.url}/dist/v2026.11.20-0/${file}`));
  }
});

test('kurl.md 3.4: the first version behind latest is what latest means; addOns has the categories', async ({
  signal,
}) => {
  await using box = await tree();
  await bucket(box, signal);
  await using site = await serveFolder(box.at('bucket'));
  const at = `${site.url}/dist/v2026.11.20-0`;
  const lists = JSON.parse((await fetched(`${at}/supported-versions-gen.json`)).toString()) as Record<string, unknown>;
  assert.is(typeof lists['_comment'], 'string');
  assert.equal(lists['supportedVersions'], {
    minio: ['latest', '2025-10-15T17-29-55Z'],
    rook: ['latest', '1.0.4', '1.0.4-14.2.21'],
    weave: ['latest', '2.8.1+build'],
  });
  const { addOns } = JSON.parse((await fetched(`${at}/addons-gen.json`)).toString()) as { addOns: object[] };
  assert.equal(
    addOns.map((addon) => Object.keys(addon).toSorted()),
    addOns.map(() => ['fulfills', 'name', 'recommends', 'requires']),
  );
});

test.run();
