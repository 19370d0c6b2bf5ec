/** What can go wrong between apt-get and a repository: each is one clear error, and nothing is left behind. */
import { lstat, mkdir, readdir, symlink } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { bytesOf, type Fault } from '../support/web-server.ts';
import { indexed, servePool } from './support/apt-repository.ts';
import { cannotRun, run, shell } from './support/programs.ts';
import { openTinyRepository, TINY_PROGRAMS, type TinyRepository } from './support/tiny-repository.ts';

const test = suite('apt repositories that fail');
const reason = cannotRun(...TINY_PROGRAMS, 'mount', 'umount');
let tiny: TinyRepository;

const NAMES = ['zebra-app', 'zebra-many'];

/** Replies with the same number of other bytes for paths that match. */
function altered(pattern: RegExp): Fault {
  return ({ path }, regular) =>
    pattern.test(path) ? { ...regular, body: Buffer.alloc(bytesOf(regular.body).byteLength, 'x') } : undefined;
}

/** A folder with so little room, until it is disposed of. */
async function smallDisk(name: string, size: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = tiny.at(name);
  await mkdir(path);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await run('umount', [path]);
    },
  };
}

/** Processes that were given this folder in their environment. */
async function processesOf(folder: string): Promise<string> {
  return shell('grep -lz -- "$1" /proc/[0-9]*/environ 2>/dev/null || true', `CURLEW_STATE=${folder}`);
}

if (reason === undefined) {
  test.before(async () => {
    tiny = await openTinyRepository();
  });
  test.after(async () => tiny[Symbol.asyncDispose]());

  test('a repository that is down', async ({ signal }) => {
    const { url, ...server } = await servePool(tiny.served);
    await server[Symbol.asyncDispose]();
    const error = await assert.rejectsWith(
      tiny.collect(url, NAMES, {}, signal),
      'FETCH_FAILED',
      /^cannot fetch packages for ubuntu-22\.04 \(zebra-app, zebra-many\) \(amd64\): a repository cannot be read\n {2}\| http:/,
    );
    assert.ok(error.message.includes(`${url}/dists/stable/InRelease: Could not connect to`), error.message);
    assert.is(error.message.split('\n').length, 2);
  });

  test('an address without a repository', async ({ signal }) => {
    await using server = await servePool({});
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    await assert.rejectsWith(collecting, 'FETCH_FAILED', /cannot be read\n.*Release/);
  });

  test('a package that is gone', async ({ signal }) => {
    const { 'pool/zebra-lib_2.3-1_all.deb': _gone, ...served } = tiny.served;
    await using server = await servePool(served);
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    await assert.rejectsWith(collecting, 'FETCH_FAILED', /\n {2}\| http[^ ]*zebra-lib_2\.3-1_all\.deb: 404 +Not Found/);
  });

  test('secrets of an address are not shown', async ({ signal }) => {
    await using server = await servePool({});
    const url = server.url.replace('//', '//me:secret@');
    const { message } = await assert.rejectsWith(tiny.collect(url, NAMES, {}, signal), 'FETCH_FAILED');
    assert.not.match(message, /secret/);
    await using whole = await servePool(tiny.served);
    const open = whole.url.replace('//', '//me:secret@');
    const { packages } = await tiny.collect(open, ['zebra-docs'], {}, signal);
    assert.equal(
      packages.map(({ repository }) => repository),
      [`${whole.url}/`],
    );
    assert.is(whole.log.at(-1)?.headers['authorization'], `Basic ${Buffer.from('me:secret').toString('base64')}`);
  });

  for (const [what, from, to] of [
    ['a version that is a path', 'Version: 9.0-1', 'Version: 9:9/../../../evil'],
    ['a file from elsewhere', /^Filename: .*zebra-lib_2.*$/m, 'Filename: ../../../../etc/passwd'],
    ['no sha256', /^SHA256: .*$/gm, 'X-Nothing: 1'],
  ] as const) {
    test(`an index that is signed, with ${what}`, async ({ signal }) => {
      const edit = (text: string): string => text.replace(from, to);
      await using server = await servePool(await indexed(tiny.at('repository'), tiny.key, ['amd64'], edit));
      const folder = tiny.at(`hostile-${what}`.replaceAll(' ', '-'));
      await mkdir(folder);
      const collecting = tiny.collect(server.url, NAMES, { folder }, signal);
      await assert.rejectsWith(collecting, 'FETCH_FAILED');
      assert.equal(await readdir(folder), []);
    });
  }

  test('a name in an index that programs would take for an option is no package', async ({ signal }) => {
    const planted = tiny.at('planted');
    const fields = ['Version: 1', 'Architecture: amd64', 'Priority: required', 'Filename: ./x.deb', 'Size: 1'];
    const stanza = [`-oDir::Cache::pkgcache=${planted}`, '--version'].map((name) => {
      const lines = [`Package: ${name}`, ...fields, `SHA256: ${'0'.repeat(64)}`];
      return `${lines.join('\n')}\n\n`;
    });
    const edit = (text: string): string => `${stanza.join('')}${text}`;
    await using server = await servePool(await indexed(tiny.at('repository'), tiny.key, ['amd64'], edit));
    const { packages } = await tiny.collect(server.url, NAMES, {}, signal);
    assert.is(packages.length, 7);
    await assert.rejectsWith(tiny.collect(server.url, ['--version'], {}, signal), 'PACKAGES_UNRESOLVED');
    assert.is(await lstat(planted).catch(() => undefined), undefined);
  });

  for (const [what, fields, says] of [
    [
      'whose mirror is not updated',
      'Date: Sat, 01 Jan 2022 00:00:00 UTC\nValid-Until: Sat, 08 Jan 2022 00:00:00 UTC\n',
      /expired/,
    ],
    ['from the future', 'Date: Fri, 01 Jan 2100 00:00:00 UTC\n', /not valid yet/],
  ] as const) {
    test(`a repository ${what} names the clock as a cause, too`, async ({ signal }) => {
      await using server = await servePool(
        await indexed(tiny.at('repository'), tiny.key, ['amd64'], undefined, fields),
      );
      const error = await assert.rejectsWith(tiny.collect(server.url, NAMES, {}, signal), 'FETCH_FAILED', says);
      assert.match(error.hint ?? '', 'set the clock if it is wrong');
    });
  }

  test('a signature by a key that is not known', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const collecting = tiny.collect(server.url, NAMES, { key: tiny.strangeKey.ring }, signal);
    const error = await assert.rejectsWith(collecting, 'SIGNATURE_INVALID', /not signed with its configured key/);
    assert.match(error.message, /NO_PUBKEY/);
    assert.equal(
      server.log.filter(({ path }) => path.endsWith('.deb')),
      [],
    );
  });

  test('a key ring that is not there is named', async ({ signal }) => {
    const collecting = tiny.collect('http://127.0.0.1:1', NAMES, { key: '/nowhere/ring.gpg' }, signal);
    const { hint } = await assert.rejectsWith(collecting, 'FILE_UNUSABLE', /key ring \/nowhere\/ring\.gpg of the/);
    assert.match(hint ?? '', /ubuntu-keyring/);
  });

  test('a machine without apt-get is told so', async ({ signal }) => {
    const env = await tiny.withBash(`PATH=${tiny.at('few')} exec /bin/bash "$@"`);
    await mkdir(tiny.at('few'));
    await symlink('/usr/bin/mkdir', tiny.at('few/mkdir'));
    const collecting = tiny.collect('http://127.0.0.1:1', NAMES, { env }, signal);
    const { hint } = await assert.rejectsWith(
      collecting,
      'UNSUPPORTED',
      /: a program is missing: apt-get, apt-cache, awk, sha256sum$/,
    );
    assert.match(hint ?? '', /other backend/);
  });

  test('an index of releases that was changed after it was signed', async ({ signal }) => {
    const release = String(tiny.served['dists/stable/InRelease']).replace('Label: Tiny', 'Label: Evil');
    await using server = await servePool({ ...tiny.served, 'dists/stable/InRelease': release });
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    await assert.rejectsWith(collecting, 'SIGNATURE_INVALID', /BADSIG/);
  });

  test('a repository without a signature, unless it is to be trusted', async ({ signal }) => {
    const { sign: _sign, ...key } = tiny.key;
    const served = await indexed(tiny.at('repository'), { ...key, sign: async (text) => text }, ['amd64']);
    const { 'dists/stable/InRelease': release = '', ...rest } = served;
    await using server = await servePool({ ...rest, 'dists/stable/Release': release });
    await assert.rejectsWith(tiny.collect(server.url, NAMES, {}, signal), 'SIGNATURE_INVALID', /not signed/);
    const { packages } = await tiny.collect(server.url, NAMES, { key: 'none' }, signal);
    assert.is(packages.length, 7);
  });

  test('an index of packages that is not the one that was signed', async ({ signal }) => {
    await using server = await servePool(tiny.served, { faults: [altered(/\/Packages$/)] });
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    await assert.rejectsWith(collecting, 'DIGEST_MISMATCH', /Packages: Hash Sum mismatch/);
  });

  test('a package that changed since its index was read', async ({ signal }) => {
    await using server = await servePool(tiny.served, { faults: [altered(/zebra-many_.*\.deb$/)] });
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    const { message } = await assert.rejectsWith(collecting, 'DIGEST_MISMATCH', /changed while it was read/);
    assert.match(message, /zebra-many_1\.0_all\.deb: Hash Sum mismatch/);
  });

  test('a package that grew since its index was read', async ({ signal }) => {
    const grown: Fault = ({ path }, regular) =>
      path.includes('zebra-many') ? { ...regular, body: Buffer.alloc(1_000_000) } : undefined;
    await using server = await servePool(tiny.served, { faults: [grown] });
    const collecting = tiny.collect(server.url, NAMES, {}, signal);
    await assert.rejectsWith(collecting, 'DIGEST_MISMATCH', /zebra-many_1\.0_all\.deb: File has unexpected size/);
  });

  for (const [what, option, size] of [
    ['where packages go', 'folder', '16k'],
    ['where the work is done', 'scratch', '16k'],
    ['where packages wait', 'scratch', '200k'],
  ] as const) {
    test(`a full disk ${what}`, async ({ signal }) => {
      await using server = await servePool(tiny.served);
      await using disk = await smallDisk(`small-${option}-${size}`, size);
      const collecting = tiny.collect(server.url, NAMES, { [option]: disk.path }, signal);
      await assert.rejectsWith(collecting, 'NO_SPACE', /no space left/);
    });
  }

  test('stopped while a package never comes: no process is left', async ({ signal }) => {
    const stop = new AbortController();
    let reached: (() => void) | undefined;
    const stuck: Fault = ({ path }, regular) => {
      if (!path.includes('zebra-many')) return undefined;
      reached?.();
      return { ...regular, sending: 'never' };
    };
    await using server = await servePool(tiny.served, { faults: [stuck] });
    const scratch = tiny.at('stopped');
    await mkdir(scratch);
    const waiting = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const collecting = tiny.collect(server.url, NAMES, { scratch }, AbortSignal.any([signal, stop.signal]));
    const outcome = collecting.catch((thrown: unknown) => thrown);
    await Promise.race([waiting, outcome]);
    assert.is.not(await processesOf(`${scratch}/state`), '');
    const reasonToStop = new Error('stopped');
    stop.abort(reasonToStop);
    assert.is(await outcome, reasonToStop);
    assert.is(await processesOf(`${scratch}/state`), '');
  });
}

if (reason !== undefined) test.skip('all', reason);
test.run();
