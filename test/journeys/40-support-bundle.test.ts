/** An operator whose machine hangs stops `curlew support-bundle`, and sends what is there. */
import { access, readdir } from 'node:fs/promises';
import { delimiter } from 'node:path';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk, startCurlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { readBundle } from '../support/support-bundles.ts';
import { tree } from '../support/tree.ts';

const test = suite('journeys/support-bundle', { timeoutMs: 120_000 });

test('a preview writes nothing; Ctrl-C leaves a whole bundle; inspect shows what is missing', async () => {
  await using box = await tree({ 'bin/journalctl': '#!/bin/sh\ntouch "$HOME/began"; exec sleep 1000\n' });
  const PATH = [box.at('bin'), process.env['PATH']].join(delimiter);
  const options = { cwd: box.path, env: { PATH } };
  const words = ['support-bundle', '--install-dir', box.at('node'), '-o', 'x.tar.gz'];
  const preview = await curlewOk([...words, '--dry-run'], options);
  assert.match(preview, /^host-collectors\/run-host\/kubelet-journal\.txt: journalctl --unit=kubelet /m);
  assert.equal(await readdir(box.path), ['bin']);
  const running = startCurlew(words, options);
  await appears(box.at('began'));
  running.kill('SIGINT');
  const { exitCode, stdout } = await running;
  assert.is(exitCode, 130, stdout);
  const { files, index } = await readBundle(box.at('x.tar.gz'));
  assert.ok(files.has('version.yaml'));
  const stopped = index.files.find(({ path }) => path === 'host-collectors/run-host/kubelet-journal.txt');
  assert.is(stopped?.problem, 'the command was stopped');
  await access(box.at('x.tar.gz'));
  const inspected = await curlew(['inspect', 'x.tar.gz'], options);
  assert.match(
    inspected.stdout,
    /^missing: host-collectors\/run-host\/kubelet-journal\.txt: the command was stopped$/m,
  );
  const again = await curlew(words, options);
  assert.is(again.exitCode, 24, again.stderr);
});

test('without a terminal, a support bundle prints no line for each file', async () => {
  await using box = await tree({ 'bin/journalctl': '#!/bin/sh\n' });
  const PATH = [box.at('bin'), process.env['PATH']].join(delimiter);
  const words = ['support-bundle', '--install-dir', box.at('node'), '-o', 'x.tar.gz'];
  const { stdout, stderr } = await curlew(words, { cwd: box.path, env: { PATH } });
  assert.match(stdout, /^\S*x\.tar\.gz: \d/);
  assert.not.match(stderr, /: done$/m);
});

test.run();
