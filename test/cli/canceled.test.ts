/** What commands say that were stopped: what they have written, and what the same command does. */
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/canceled');

const NOTHING = /^canceled; nothing was written$/;

for (const [line, said] of [
  ['bundle spec.yaml --from store -o b.tar.gz', NOTHING],
  ['bundle spec.yaml --from store -o b.tar.gz --split 1M', NOTHING],
  ['bundle spec.yaml --from store --to one,two', NOTHING],
  ['split b.tar.gz --size 1M', NOTHING],
  ['split b.tar.gz --size 1M --dry-run', NOTHING],
  ['join-parts b.tar.gz.parts.json -o b.tar.gz', NOTHING],
  ['join-parts b.tar.gz.parts.json --check', NOTHING],
  ['apply d.tar.gz --base b.tar.gz -o c.tar.gz', NOTHING],
  ['verify b.tar.gz', NOTHING],
  ['sign b.tar.gz --key key', NOTHING],
  ['sign --store store --key key', /the same command signs again/],
  ['pull store/b.tar.gz', /the same command continues with what has arrived/],
  ['pull store/b.tar.gz --dry-run', NOTHING],
  ['promote --from store --to other', NOTHING],
  ['promote --from store --to other --dry-run', NOTHING],
  [
    'import-external versions.json --to store',
    /the same command continues; the store lists the packages only when all/,
  ],
  ['prune --from store --keep 1', /the same command removes the rest/],
  ['dev web', /what is built stays: the same command builds and installs the rest/],
  ['channel apply channel.yaml --yes', /what is applied stays: the same command continues/],
  ['channel plan channel.yaml --to v1.35.x', NOTHING],
  ['cluster status cluster.yaml', NOTHING],
  ['cluster apply cluster.yaml --bundle b.tar.gz --yes', /steps that are done stay: the same command continues/],
  ['cluster apply cluster.yaml --bundle b.tar.gz', NOTHING],
  ['machine remove cluster.yaml paris', NOTHING],
  ['fleet status fleet.yaml --state state', NOTHING],
  ['fleet apply fleet.yaml --state state --yes', /what has begun is in the state: the same command continues it/],
  [
    'fleet apply fleet.yaml --state state --watch 10s --yes',
    /what has begun is in the state: the same command continues it/,
  ],
] as const) {
  test(`after Ctrl-C, what is left is said: ${line}`, async () => {
    await using box = await tree({ 'addons/web/1.0/Manifest': '' });
    const signal = AbortSignal.abort(new CurlewError('CANCELLED', 'canceled'));
    const { exitCode, stderr } = await runCommand(line.split(' '), box.path, {}, { signal });
    assert.is(exitCode, 130, stderr);
    assert.match(stderr, said);
  });
}

test.run();
