/** When the files of a kubeconfig are read. */
import promises, { stat, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { mock } from 'node:test';
import { openSessions } from '../../../src/cluster/kube/session.ts';
import { isSettled } from '../../../src/platform/files/file-mark.ts';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { kubeconfigText } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/session');
const FILES = ['ca.pem', 'conf', 'token'];

test('a kubeconfig and the files that it names are read once, and again after a change', async ({ signal }) => {
  const { ca } = await makeCertificate();
  const conf = kubeconfigText('https://127.0.0.1:1', { tokenFile: 'token' }, { 'certificate-authority': 'ca.pem' });
  await using box = await tree({ conf, token: 'first', 'ca.pem': ca });
  const sessions = openSessions({ KUBECONFIG: box.at('conf') });
  const sent = async (): Promise<unknown> => (await sessions.current({ signal }))?.headers['Authorization'];
  const settled = async (name: string): Promise<void> =>
    until(async () => isSettled(await stat(box.at(name), { bigint: true }), Date.now()));
  const opened = mock.method(promises, 'open');
  syncBuiltinESMExports();
  const takeRead = (): readonly string[] => {
    const paths = opened.mock.calls.map(({ arguments: [path] }) => String(path));
    opened.mock.resetCalls();
    return FILES.filter((name) => paths.includes(box.at(name)));
  };
  try {
    for (const name of FILES) await settled(name);
    assert.is(await sent(), 'Bearer first');
    assert.equal(takeRead(), FILES);
    assert.equal([await sent(), await sent()], ['Bearer first', 'Bearer first']);
    assert.equal(takeRead(), []);
    await writeFile(box.at('token'), 'other');
    assert.is(await sent(), 'Bearer other');
    assert.equal(takeRead(), ['token']);
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});

test('a kubeconfig is read at each look as long as a change of it could be hidden by the clock of its file system', async ({
  signal,
}) => {
  await using box = await tree({ token: 'a', conf: kubeconfigText('https://127.0.0.1:1', { tokenFile: 'token' }, {}) });
  const sessions = openSessions({ KUBECONFIG: box.at('conf') });
  for (const token of 'abcdefghijklmnopqrstuvwxyz') {
    await writeFile(box.at('token'), token);
    assert.is((await sessions.current({ signal }))?.headers['Authorization'], `Bearer ${token}`);
  }
});

test('after a refusal all files are read again', async ({ signal }) => {
  await using box = await tree({ conf: kubeconfigText('https://127.0.0.1:1', { token: 'a' }, {}) });
  const sessions = openSessions({ KUBECONFIG: box.at('conf') });
  await until(async () => isSettled(await stat(box.at('conf'), { bigint: true }), Date.now()));
  const refused = await sessions.current({ signal });
  if (refused === undefined) throw new Error('no session');
  const opened = mock.method(promises, 'open');
  syncBuiltinESMExports();
  try {
    assert.is(await sessions.renewed(refused, { signal }), undefined);
    assert.equal(
      opened.mock.calls.map(({ arguments: [path] }) => path),
      [box.at('conf')],
    );
  } finally {
    mock.restoreAll();
    syncBuiltinESMExports();
  }
});

test.run();
