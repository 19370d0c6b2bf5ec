/** A trial that changes a real API server with the real kubectl, and is removed from it again. */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as assert from '../support/assert.ts';
import { curlew, type Outcome } from '../support/curlew.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { cannotRun, oracle } from './support/programs.ts';
import { noSandbox } from './support/sandbox.ts';

const test = suite('trials and a real API server', { timeoutMs: 240_000 });

const SCRIPT = `web() { kubectl create configmap web -n default --from-literal=a=1; }
web_pre_remove() { kubectl delete configmap web -n default; }
`;

/** A project without workloads: nothing here runs pods. */
const PAGE = `apiVersion: v1
kind: ConfigMap
metadata: { name: page, namespace: pages }
data: { text: first }
`;

const reason = (await noSandbox()) ?? cannotRun(...API_SERVER_PROGRAMS);
if (reason === undefined) {
  let folder: Tree;
  let server: ApiServer;
  test.before(async () => {
    folder = await tree();
    server = await startApiServer(folder.at('server'));
  });
  test.after(async () => {
    await server[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const run = async (box: Tree, ...words: readonly string[]): Promise<Outcome> => {
    const env = { PATH: `${process.env['PATH'] ?? ''}:${dirname(oracle('../api-server/kubectl'))}` };
    return curlew([...words, '--root', 'root'], { cwd: box.path, env });
  };
  const found = async (): Promise<string> =>
    server.kubectl(['get', 'configmap', 'web', '-n', 'default', '--ignore-not-found', '-o', 'name']);

  test('a hook with kubectl fails with the advice, works with a kubeconfig, and removes what it created', async () => {
    await using box = await tree();
    const addon = { name: 'web', version: '1.0.0', files: { 'install.sh': SCRIPT } };
    await writeFile(box.at('b.tar.gz'), bundleOf([addon]));
    const words = ['install', '--bundle', 'b.tar.gz'];
    const alone = await run(box, ...words);
    assert.is(alone.exitCode, 20, alone.stderr);
    assert.match(alone.stderr, /hooks of a trial reach a cluster only with --kubeconfig FILE/);
    assert.is(await found(), '');
    const given = ['--kubeconfig', server.kubeconfig];
    const installed = await run(box, ...words, ...given);
    assert.is(installed.exitCode, 0, installed.stderr);
    assert.match(installed.stderr, /hooks change the cluster https:\/\/127\.0\.0\.1:\d+ \(context \S+, Kubernetes v1/);
    assert.is(await found(), 'configmap/web');
    const removed = await run(box, 'uninstall', 'web', '--yes', ...given);
    assert.is(removed.exitCode, 0, removed.stderr);
    assert.is(await found(), '');
  });

  test('a new add-on is tried with the next command, and again after a change', async () => {
    await using box = await tree({ 'page.yaml': PAGE });
    const env = { PATH: `${process.env['PATH'] ?? ''}:${dirname(oracle('../api-server/kubectl'))}` };
    const call = async (...words: readonly string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await curlew(words, { cwd: box.path, env });
      assert.is(exitCode, 0, stderr);
      return stdout;
    };
    assert.match(await call('new', 'page', '--from', 'page.yaml'), 'next: curlew dev page --kubeconfig FILE');
    const text = async (): Promise<string> =>
      server.kubectl(['get', 'configmap', 'page', '-n', 'pages', '-o', 'jsonpath={.data.text}']);
    assert.match(await call('dev', 'page', '--kubeconfig', server.kubeconfig), /page {2}0\.1\.0 {2}installed/);
    assert.is(await text(), 'first');
    const file = box.at('addons/page/0.1.0/upstream.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace('first', 'second'));
    assert.match(await call('dev', 'page', '--kubeconfig', server.kubeconfig), /page 0\.1\.0: built/);
    assert.is(await text(), 'second');
    // No controller would end a namespace here.
    const where = ['--root', 'out/trial', '--kubeconfig', server.kubeconfig];
    await call('uninstall', 'page', '--yes', '--keep-data', ...where);
    assert.is(
      await server.kubectl(['get', 'configmap', 'page', '-n', 'pages', '--ignore-not-found', '-o', 'name']),
      '',
    );
  });

  test('a server that has died is refused before anything runs', async () => {
    await using box = await tree();
    await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'web', version: '1.0.0', files: { 'install.sh': SCRIPT } }]));
    await server.kill();
    const { exitCode, stderr } = await run(box, 'install', '--bundle', 'b.tar.gz', '--kubeconfig', server.kubeconfig);
    assert.is(exitCode, 33, stderr);
    assert.match(stderr, /cannot be used: .*refused/);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
