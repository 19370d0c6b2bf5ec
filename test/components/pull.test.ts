/** Fetching from real servers, after real programs, and onto a disk that is full. */
import { renameSync, statfsSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { pathsBeside } from '../../src/ship/transfer/partial-file.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew, curlewOk, startCurlew } from '../support/curlew.ts';
import { noise, packageOf } from '../support/packages.ts';
import { startProxy } from '../support/proxy-server.ts';
import { largePackage, pullTo } from '../support/pulls.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';
import { startCounted } from './support/counted-server.ts';
import { startNginx } from './support/nginx.ts';
import { presign } from './support/presign.ts';
import { cannotRun, run, succeeds } from './support/programs.ts';
import { BUCKET, cannotServe, S3_KEYS, startS3 } from './support/s3-servers.ts';

const test = suite('components/pull', { timeoutMs: 120_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';

/** Bytes of blocks that are there already. */
function sameBytes(partial: Buffer, whole: Buffer): number {
  let same = 0;
  for (let at = 0; at < partial.byteLength; at += 4096) {
    if (partial.subarray(at, at + 4096).equals(whole.subarray(at, at + 4096))) same += 4096;
  }
  return same;
}

async function served(): Promise<Tree> {
  return tree({ [`root/${NAME}`]: WEB.bytes });
}

const noNginx = cannotRun('nginx', 'curl');
if (noNginx === undefined) {
  test('nginx: by ranges, and what curl has begun', async ({ signal }) => {
    await using box = await served();
    await using nginx = await startNginx(box.at('nginx'), box.at('root'));
    const address = `${nginx.url}/${NAME}`;
    assert.is((await pullTo(box.at('whole'), [address], { signal })).fetched, WEB.plan.index.tocOffset);
    assert.ok((await readFile(box.at('whole'))).equals(WEB.bytes));
    await run('curl', ['--silent', '--fail', '--range', '0-5999999', '--output', box.at('begun'), address]);
    const { fetched } = await pullTo(box.at('begun'), [address], { signal });
    assert.ok(fetched < 7_000_000, String(fetched));
    assert.ok((await readFile(box.at('begun'))).equals(WEB.bytes));
  });

  test('nginx that refuses ranges, refuses connections beyond one, or is slow, is read all the same', async ({
    signal,
  }) => {
    for (const directive of ['max_ranges 0;', 'limit_conn all 1; limit_conn_status 429;', 'limit_rate 8m;']) {
      await using box = await served();
      await using nginx = await startNginx(box.at('nginx'), box.at('root'), [directive]);
      const http = { retry: { attempts: 40, baseMs: 20, capMs: 200 } };
      await pullTo(box.at(NAME), [`${nginx.url}/${NAME}`], { signal, http });
      assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes), directive);
    }
  });

  test('nginx whose file is replaced while it is fetched: what both have is kept', async ({ signal }) => {
    const next = largePackage('1.0.1', { blob4: noise(300_000, 98) });
    await using box = await served();
    await writeFile(box.at('next'), next.bytes);
    await using nginx = await startNginx(box.at('nginx'), box.at('root'));
    let came = 0;
    const pace = (bytes: number): number => {
      if (came < 3_000_000 && came + bytes >= 3_000_000) renameSync(box.at('next'), box.at('root', NAME));
      came += bytes;
      return 0;
    };
    const options = { connections: 1, pace, signal };
    const { fetched, notes } = await pullTo(box.at(NAME), [`${nginx.url}/${NAME}`], options);
    assert.match(notes.join('\n'), 'has been replaced');
    assert.ok(fetched < 11_000_000, String(fetched));
    assert.ok((await readFile(box.at(NAME))).equals(next.bytes));
  });
} else {
  test.skip('nginx', noNginx);
}

const noS3 = cannotServe('versitygw');
if (noS3 === undefined) {
  test('versitygw: by its S3 address and by a presigned one, and with the signature beside it', async () => {
    await using box = await tree({ [NAME]: WEB.bytes });
    await using server = await startS3('versitygw', box.at('s3'));
    const env = { ...S3_KEYS, AWS_ENDPOINT_URL_S3: server.url, AWS_REGION: 'us-east-1' };
    const options = { cwd: box.path, env };
    await curlewOk(['keygen', 'release'], options);
    await curlewOk(['sign', NAME, '--key', 'release.key'], options);
    const folder = box.at('s3/data', BUCKET, 'dist');
    await mkdir(folder, { recursive: true });
    for (const name of [NAME, `${NAME}.sigstore.json`]) await copyFile(box.at(name), `${folder}/${name}`);
    const address = `s3://${BUCKET}/dist/${NAME}`;
    const first = await curlew(['pull', address, '-o', 'first.tar.gz', '--key', 'release.pub'], options);
    assert.is(first.exitCode, 0, first.stderr);
    assert.match(first.stdout, 'signed with');
    assert.ok((await readFile(box.at('first.tar.gz'))).equals(WEB.bytes));
    const second = await curlew(['pull', presign(server.url, `dist/${NAME}`), '-o', 'second.tar.gz'], options);
    assert.is(second.exitCode, 0, second.stderr);
    assert.not.match(second.stdout + second.stderr, 'X-Amz-Signature');
    assert.ok((await readFile(box.at('second.tar.gz'))).equals(WEB.bytes));
  });
} else {
  test.skip('versitygw', noS3);
}

const noStrace = cannotRun('strace');
if (noStrace === undefined) {
  test('a disk that knows no links, as sticks for other systems are, takes a file like any other', async () => {
    await using box = await tree();
    await using server = await serveFiles({ [NAME]: WEB.bytes });
    const inject = ['-f', '-qq', '-o', box.at('trace'), '-e', 'inject=link,linkat:error=EPERM'];
    const words = [MAIN, 'pull', `${server.url}/${NAME}`, '-o', box.at('out', NAME)];
    await mkdir(box.at('out'));
    await run('strace', [...inject, process.execPath, ...words]);
    // Another thread may come between the call and its end: then the end has a line of its own.
    assert.match(await readFile(box.at('trace'), 'utf8'), /link(?:at)?(?:\(| resumed>).*EPERM.*INJECTED/);
    assert.ok((await readFile(box.at('out', NAME))).equals(WEB.bytes));
    assert.equal(await readdir(box.at('out')), [NAME]);
  });
} else {
  test.skip('a disk that knows no links', noStrace);
}

const noMount = cannotRun('mount');
if (noMount === undefined) {
  test('a disk that is too small, or fills up, is told by its folder; with room the same goes on', async ({
    signal,
  }) => {
    await using box = await tree();
    await using server = await serveFiles({ [NAME]: WEB.bytes });
    const address = [`${server.url}/${NAME}`];
    const disk = box.at('disk');
    await mkdir(disk);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk]);
    try {
      const small = await assert.rejectsWith(pullTo(`${disk}/${NAME}`, address, { signal }), 'NO_SPACE');
      assert.match(small.message, `into ${disk}: `);
      assert.equal(await readdir(disk), []);
      await run('mount', ['-o', 'remount,size=14m', disk]);
      let filled = false;
      const pace = (): number => {
        if (filled) return 0;
        filled = true;
        const { bavail, bsize } = statfsSync(disk);
        writeFileSync(`${disk}/filler`, Buffer.alloc(bavail * bsize - 5_000_000));
        return 0;
      };
      const full = await assert.rejectsWith(pullTo(`${disk}/${NAME}`, address, { signal, pace }), 'NO_SPACE');
      assert.match(full.message, disk);
      await rm(`${disk}/filler`);
      const { fetched } = await pullTo(`${disk}/${NAME}`, address, { signal });
      assert.ok(fetched < WEB.bytes.byteLength - 2_000_000, String(fetched));
      assert.ok((await readFile(`${disk}/${NAME}`)).equals(WEB.bytes));
    } finally {
      await succeeds('umount', [disk]);
    }
  });
} else {
  test.skip('a disk that is full', noMount);
}

test('killed by the system anywhere, and led through another proxy then, it asks for no more than 4 MiB a connection again', async ({
  signal,
}) => {
  const MIB = 1 << 20;
  const CONNECTIONS = 2;
  const { bytes } = packageOf('large', '1.0.0', [{ path: 'assets/blob', data: noise(40 * MIB, 7) }]);
  await using server = await startCounted(bytes);
  const hosts = { 'files.example:80': server.port };
  await using first = await startProxy({ hosts });
  await using second = await startProxy({ hosts });
  const words = [
    'pull',
    `http://files.example/${NAME}`,
    '--allow-http',
    'files.example',
    '--connections',
    String(CONNECTIONS),
  ];
  let most = 0;
  // Always the same ones, anywhere in the file.
  for (const [index, part] of [...noise(6, 11)].entries()) {
    await using box = await tree();
    const at = Math.floor((bytes.byteLength * (part + 1)) / 258);
    const reached = server.sent(at);
    const pulling = startCurlew(words, { cwd: box.path, env: { HTTP_PROXY: first.url }, signal });
    await Promise.race([reached, pulling]);
    pulling.kill('SIGKILL');
    const killed = await pulling;
    assert.is(killed.signal, 'SIGKILL', killed.stderr);
    server.take();
    const partial = await readFile(pathsBeside(box.at(NAME)).partial).catch(() => Buffer.alloc(0));
    const written = sameBytes(partial, bytes);
    most = Math.max(most, written);
    const env = { HTTP_PROXY: index % 2 === 0 ? second.url : first.url };
    const { exitCode, stderr } = await curlew(words, { cwd: box.path, env });
    assert.is(exitCode, 0, stderr);
    assert.ok((await readFile(box.at(NAME))).equals(bytes));
    assert.equal(await readdir(box.path), [NAME]);
    const again = server.take() - (bytes.byteLength - written);
    assert.ok(again <= CONNECTIONS * 4 * MIB, `killed with ${written} bytes there: ${again} came again`);
  }
  assert.ok(most > CONNECTIONS * 4 * MIB, `no more than ${most} bytes were ever there`);
  assert.ok(second.log.length > 0 && second.log.every((line) => line.includes('files.example')), second.log.join());
});

test.run();
