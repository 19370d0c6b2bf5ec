/** Ctrl-C while something is read that never comes, such as a pipe whose other end writes nothing. */
import { execa } from 'execa';
import { readdir } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { otherEnd, until } from '../support/appears.ts';
import { addon } from '../support/builds.ts';
import { curlewOk, interruptedAgain, startCurlew } from '../support/curlew.ts';
import { specOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { startServer, type Sending } from '../support/web-server.ts';

const test = suite('cli/interrupted', { timeoutMs: 60_000 });

test('one Ctrl-C ends a command that waits for a channel', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('channel.yaml')]);
  const child = startCurlew(['channel', 'check', 'channel.yaml'], { cwd: box.path });
  await using _end = await otherEnd(box.at('channel.yaml'));
  child.kill('SIGINT');
  assert.is((await child).exitCode, 130);
});

for (const [name, words, hint] of [
  ['build', [], 'the same command builds only the others'],
  ['publish', ['--to', 'store'], 'the same command continues'],
] as const) {
  test(`after Ctrl-C, ${name} says that the same command continues, and it does`, async () => {
    let sending: Sending = { haltAt: 1 };
    await using web = await startServer(() => ({ status: 200, body: 'a page', sending }));
    await using box = await tree({ ...addon('api', ''), ...addon('web', `asset page ${web.url}/page\n`) });
    const child = startCurlew([name, ...words], { cwd: box.path });
    await until(async () => {
      const names: readonly string[] = await readdir(box.at('out')).catch(() => []);
      return names.includes('api-1.0.tar.gz') && web.log.some(({ method }) => method === 'GET');
    });
    child.kill('SIGINT');
    const { exitCode, stderr } = await child;
    assert.is(exitCode, 130);
    assert.match(stderr, new RegExp(`^canceled\\n {2}hint: .*${hint}`, 'm'));
    sending = 'whole';
    const { packages } = JSON.parse(await curlewOk([name, ...words, '--json'], { cwd: box.path })) as {
      readonly packages: readonly { readonly outcome: string }[];
    };
    const outcomes = name === 'build' ? ['unchanged', 'built'] : ['uploaded', 'uploaded'];
    assert.equal(
      packages.map(({ outcome }) => outcome),
      outcomes,
    );
  });
}

test('after Ctrl-C before its first change, a run says that the node has not changed', async () => {
  await using web = await startServer(() => ({ status: 200, body: 'v1\n', sending: { haltAt: 1 } }));
  await using box = await tree({ 'spec.yaml': specOf([tracer('aaa')]) });
  const words = ['install', '--from', web.url, '--installer', 'spec.yaml', '--root', 'root', '--unconfined'];
  const child = startCurlew(words, { cwd: box.path });
  await until(async () => Promise.resolve(web.log.length > 0));
  child.kill('SIGINT');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 130);
  assert.match(stderr, /^canceled\n {2}hint: nothing has changed on this node: run the same command again$/m);
  assert.not.ok((await readdir(box.path)).includes('root'));
});

test('a second Ctrl-C ends any command at once, even one that cannot be cancelled', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('spec.yaml')]);
  const child = startCurlew(['installer', 'validate', 'spec.yaml'], { cwd: box.path });
  await using _end = await otherEnd(box.at('spec.yaml'));
  assert.is(await interruptedAgain(child), 'SIGINT');
});

test.run();
